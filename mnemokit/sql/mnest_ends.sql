-- Up to when each lent edge has lived by its records. (What a purged record lived through was over at some ager.)
SELECT edge_no, max(greatest(ts_used, ts_last, ts_demoted)) AS ts_end
FROM mnest_records
SEMI JOIN lent_edges USING (edge_no)
GROUP BY edge_no
