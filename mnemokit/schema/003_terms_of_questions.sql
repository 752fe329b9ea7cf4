-- The rule of terms (mnemokit/reasonlets/tokens.py) changed: characters of unspaced scripts, pictures, signs nobody sees.
-- SQL cannot find terms, so a store with questions gets a note and is indexed anew when it is opened next.
INSERT INTO store_info
SELECT 'question_index', 'to be made anew'
WHERE EXISTS (FROM question_lengths);
