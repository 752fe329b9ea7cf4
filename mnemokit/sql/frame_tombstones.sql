SELECT name_hash, realm, ts_forgotten, CASE WHEN $at IS NULL OR ts_readmitted <= $at THEN ts_readmitted END AS ts_readmitted
FROM tombstones
WHERE $at IS NULL OR ts_forgotten <= $at
ORDER BY ts_forgotten, realm, name_hash;
