-- Appends one event, which is what most appends do, with as little work as it can: one statement after
-- the lock, and an answer without columns. Returns false if nothing was appended; `append` then finds
-- out why. A log without events is left to `append`, too.
CREATE FUNCTION threadfold.append_one(
    of_thread text, held bigint, has_id boolean, id text, expected bigint, line text
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    locked text;
BEGIN
    -- The lock of `threadfold.lock`. An assignment without a table runs no statement.
    locked := pg_advisory_xact_lock(1952869476, hashtext(of_thread));
    INSERT INTO threadfold.events SELECT of_thread, expected, line
        WHERE (SELECT max(seq) + 1 FROM threadfold.events WHERE events.thread = of_thread) = expected
        AND (SELECT leases.fence FROM threadfold.leases WHERE leases.thread = of_thread)
            IS NOT DISTINCT FROM held
        AND (NOT has_id OR (SELECT log FROM threadfold.logs WHERE logs.thread = of_thread)
            IS NOT DISTINCT FROM id);
    RETURN FOUND;
END $$;
