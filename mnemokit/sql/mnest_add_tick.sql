INSERT INTO ager_runs BY NAME
SELECT $now AS ts_ager, $kind AS kind, $decayed AS decayed, $decayed_protos AS decayed_protos,
       $demoted_to_decaying AS demoted_to_decaying, $merged AS merged, $purged_protos AS purged_protos,
       $recurring_protos AS recurring_protos, $proposed_archive AS proposed_archive, $params AS params,
       $seconds AS seconds
