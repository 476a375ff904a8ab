CREATE TABLE threadfold.logs (
    thread     text COLLATE "C" PRIMARY KEY,
    log        text,  -- the id of the log, if the writer gave one
    base_seq   bigint,
    base       text,  -- what the events before base_seq amount to
    base_facts text   -- a column of its own: opening a thread does not read it
);
CREATE TABLE threadfold.events (
    thread text COLLATE "C" NOT NULL,
    seq    bigint NOT NULL,
    event  text   NOT NULL,  -- the line, byte for byte
    PRIMARY KEY (thread, seq)
);
CREATE TABLE threadfold.leases (
    thread  text COLLATE "C" PRIMARY KEY,
    worker  text   NOT NULL,
    fence   bigint NOT NULL,
    expires bigint NOT NULL  -- in milliseconds since 1970
);
-- A fence is never given twice, even if its row is gone: a worker that slept might know it.
CREATE SEQUENCE threadfold.fences;

-- Every write of a thread takes its lock first, until the transaction ends. A statement after it
-- sees what the writer before it committed. The number keeps these locks apart from those of other
-- programs in the database; two threads that share a hash only wait for each other.
CREATE FUNCTION threadfold.lock(of_thread text) RETURNS void LANGUAGE sql AS
    $$ SELECT pg_advisory_xact_lock(1952869476, hashtext(of_thread)) $$;

-- Whether the lease with this fence is the current one of the thread; without a fence, whether no
-- worker has the thread. `outcome` is null if so.
CREATE FUNCTION threadfold.check_lease(
    of_thread text, held bigint,
    OUT outcome text, OUT worker text, OUT fence bigint, OUT expires bigint
) LANGUAGE plpgsql AS $$
BEGIN
    SELECT leases.worker, leases.fence, leases.expires INTO worker, fence, expires
        FROM threadfold.leases WHERE thread = of_thread;
    outcome := CASE
        WHEN held IS NULL AND fence IS NOT NULL THEN 'held'
        WHEN held IS DISTINCT FROM fence THEN 'lost'
    END;
END $$;

CREATE FUNCTION threadfold.append(
    of_thread text, held bigint, id text, expected bigint, lines text[],
    OUT outcome text, OUT found_len bigint, OUT found_id text,
    OUT worker text, OUT fence bigint, OUT expires bigint
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM threadfold.lock(of_thread);
    SELECT * INTO outcome, worker, fence, expires FROM threadfold.check_lease(of_thread, held);
    IF outcome IS NOT NULL THEN
        RETURN;
    END IF;
    -- They are numbered from 0 without a gap, and the key finds the last one without a scan.
    SELECT coalesce(max(seq) + 1, 0) INTO found_len FROM threadfold.events WHERE thread = of_thread;
    SELECT log INTO found_id FROM threadfold.logs WHERE thread = of_thread;
    -- An empty log has no id.
    IF expected > 0 AND found_len > 0 AND id IS DISTINCT FROM found_id THEN
        outcome := 'other log';
    ELSIF found_len <> expected THEN
        outcome := 'conflict';
    ELSIF cardinality(lines) > 0 THEN
        IF found_len = 0 THEN
            INSERT INTO threadfold.logs VALUES (of_thread, id);
        END IF;
        INSERT INTO threadfold.events
            SELECT of_thread, expected + number - 1, line
            FROM unnest(lines) WITH ORDINALITY AS given (line, number);
    END IF;
END $$;

CREATE FUNCTION threadfold.acquire_lease(
    of_thread text, by_worker text, at_time bigint, until bigint,
    OUT outcome text, OUT worker text, OUT fence bigint, OUT expires bigint
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM threadfold.lock(of_thread);
    SELECT * INTO outcome, worker, fence, expires FROM threadfold.check_lease(of_thread, NULL);
    IF outcome IS NOT NULL AND at_time < expires THEN
        RETURN;
    END IF;
    DELETE FROM threadfold.leases WHERE thread = of_thread;
    INSERT INTO threadfold.leases VALUES (of_thread, by_worker, nextval('threadfold.fences'), until)
        RETURNING NULL, leases.worker, leases.fence, leases.expires
        INTO outcome, worker, fence, expires;
END $$;

CREATE FUNCTION threadfold.renew_lease(
    of_thread text, held bigint, until bigint,
    OUT outcome text, OUT worker text, OUT fence bigint, OUT expires bigint
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM threadfold.lock(of_thread);
    SELECT * INTO outcome, worker, fence, expires FROM threadfold.check_lease(of_thread, held);
    IF outcome IS NULL THEN
        UPDATE threadfold.leases SET expires = greatest(leases.expires, until)
            WHERE thread = of_thread RETURNING leases.expires INTO expires;
    END IF;
END $$;

CREATE FUNCTION threadfold.release_lease(of_thread text, held bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM threadfold.lock(of_thread);
    DELETE FROM threadfold.leases WHERE thread = of_thread AND fence = held;
END $$;

-- Keeps what the first events of a log amount to, if the log has this id and as many events.
CREATE FUNCTION threadfold.save_base(
    of_thread text, of_log text, seq_of_base bigint, of_base text, facts_of_base text
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM threadfold.lock(of_thread);
    UPDATE threadfold.logs
        SET base_seq = seq_of_base, base = of_base, base_facts = facts_of_base
        WHERE thread = of_thread AND log = of_log AND coalesce(base_seq, 0) < seq_of_base
        AND EXISTS (SELECT FROM threadfold.events
                    WHERE events.thread = of_thread AND seq = seq_of_base - 1);
END $$;

-- Removes a thread.
CREATE FUNCTION threadfold.delete_thread(of_thread text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM threadfold.lock(of_thread);
    DELETE FROM threadfold.events WHERE thread = of_thread;
    DELETE FROM threadfold.logs WHERE thread = of_thread;
    DELETE FROM threadfold.leases WHERE thread = of_thread;
END $$;

-- Appends one event, which is what most appends do, with as little work as it can: one statement after
-- the lock, and an answer without columns. Returns false if nothing was appended; `append` then finds
-- out why. A log without events is left to `append`, too.
CREATE FUNCTION threadfold.append_one(
    of_thread text, held bigint, id text, expected bigint, line text
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
        AND (SELECT log FROM threadfold.logs WHERE logs.thread = of_thread) IS NOT DISTINCT FROM id;
    RETURN FOUND;
END $$;
