CREATE TABLE threadfold.logs (
    thread text COLLATE "C" PRIMARY KEY,
    log    text  -- the id of the log, if the writer gave one
);
CREATE TABLE threadfold.events (
    thread text COLLATE "C" NOT NULL,
    seq    bigint NOT NULL,
    event  text   NOT NULL,  -- the line, byte for byte
    PRIMARY KEY (thread, seq)
);
CREATE TABLE threadfold.entries (
    thread     text COLLATE "C" NOT NULL,
    compaction bigint  NOT NULL,
    number     integer NOT NULL,
    entry      text    NOT NULL,
    PRIMARY KEY (thread, compaction, number)
);
CREATE TABLE threadfold.runs (
    thread text COLLATE "C" PRIMARY KEY,
    run    text NOT NULL
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
    of_thread text, held bigint, has_id boolean, id text, expected bigint, lines text[],
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
    IF has_id AND expected > 0 AND found_len > 0 AND id IS DISTINCT FROM found_id THEN
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

-- Removes a thread; its archive only if that is asked for.
CREATE FUNCTION threadfold.delete_thread(of_thread text, archive boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM threadfold.lock(of_thread);
    DELETE FROM threadfold.events WHERE thread = of_thread;
    DELETE FROM threadfold.logs WHERE thread = of_thread;
    DELETE FROM threadfold.leases WHERE thread = of_thread;
    DELETE FROM threadfold.runs WHERE thread = of_thread;
    IF archive THEN
        DELETE FROM threadfold.entries WHERE thread = of_thread;
    END IF;
END $$;

-- Replaces the entries of a compaction. `has_lease` says whether the archive is that of a worker.
CREATE FUNCTION threadfold.write_entries(
    of_thread text, has_lease boolean, held bigint, of_compaction bigint, lines text[],
    OUT outcome text
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM threadfold.lock(of_thread);
    IF has_lease THEN
        SELECT checked.outcome INTO outcome FROM threadfold.check_lease(of_thread, held) AS checked;
        IF outcome IS NOT NULL THEN
            RETURN;
        END IF;
    END IF;
    DELETE FROM threadfold.entries WHERE thread = of_thread AND compaction = of_compaction;
    INSERT INTO threadfold.entries
        SELECT of_thread, of_compaction, number, line
        FROM unnest(lines) WITH ORDINALITY AS given (line, number);
END $$;
