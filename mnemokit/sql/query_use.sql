INSERT INTO query_uses BY NAME
SELECT $query AS query, $tool AS tool, $args_shape AS args_shape, 1 AS uses, $ok AS ok, 1 - $ok AS fail,
       $at AS ts_first, $at AS ts_last
