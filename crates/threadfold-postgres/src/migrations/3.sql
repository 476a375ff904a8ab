-- The facts in the events before base_seq, in a column of its own: opening a thread does not read it.
ALTER TABLE threadfold.logs ADD COLUMN base_facts text;
DROP FUNCTION threadfold.save_base(text, text, bigint, text);

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

-- What a search of the archive looks in: the text in lower case. Null if every search reads the entry:
-- an earlier version wrote it, or it replaces others.
ALTER TABLE threadfold.entries ADD COLUMN text text COLLATE "C";

-- The words of messages. `key` stands for a thread, and each of its words begins with it, so a search
-- reads the part of the index that is of this thread.
CREATE TABLE threadfold.indexed (
    key      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    thread   text COLLATE "C" NOT NULL UNIQUE,
    events   bigint NOT NULL,  -- so many are indexed,
    messages bigint NOT NULL   -- and so many messages in them
);
CREATE TABLE threadfold.messages (
    key    bigint NOT NULL,
    number bigint NOT NULL,
    seq    bigint NOT NULL,
    words  text[] COLLATE "C" NOT NULL,
    PRIMARY KEY (key, number)
);
CREATE INDEX messages_words ON threadfold.messages USING gin (words);

-- Words as the index has them.
CREATE FUNCTION threadfold.terms(of_key bigint, given text[]) RETURNS text[] LANGUAGE sql IMMUTABLE AS
    $$ SELECT coalesce(array_agg(of_key || '.' || word), '{}') FROM unnest(given) AS words (word) $$;

-- Adds messages, if the log has this id and so many of its events are indexed. Each text holds the
-- words of a message, with blanks between them.
CREATE FUNCTION threadfold.add_words(
    of_thread text, of_log text, from_events bigint, to_events bigint, to_messages bigint,
    numbers bigint[], seqs bigint[], texts text[]
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    of_key bigint;
BEGIN
    PERFORM threadfold.lock(of_thread);
    IF NOT EXISTS (SELECT FROM threadfold.logs LEFT JOIN threadfold.indexed USING (thread)
                   WHERE thread = of_thread AND log IS NOT DISTINCT FROM of_log
                   AND coalesce(events, 0) = from_events) THEN
        RETURN false;
    END IF;
    INSERT INTO threadfold.indexed (thread, events, messages)
        VALUES (of_thread, to_events, to_messages)
        ON CONFLICT (thread) DO UPDATE SET events = excluded.events, messages = excluded.messages
        RETURNING key INTO of_key;
    INSERT INTO threadfold.messages
        SELECT of_key, number, seq, threadfold.terms(of_key, string_to_array(words, ' '))
        FROM unnest(numbers, seqs, texts) AS given (number, seq, words);
    RETURN true;
END $$;

-- Removes a thread; its archive only if that is asked for.
CREATE OR REPLACE FUNCTION threadfold.delete_thread(of_thread text, archive boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM threadfold.lock(of_thread);
    DELETE FROM threadfold.events WHERE thread = of_thread;
    DELETE FROM threadfold.logs WHERE thread = of_thread;
    DELETE FROM threadfold.leases WHERE thread = of_thread;
    DELETE FROM threadfold.runs WHERE thread = of_thread;
    DELETE FROM threadfold.messages WHERE key = (SELECT key FROM threadfold.indexed WHERE thread = of_thread);
    DELETE FROM threadfold.indexed WHERE thread = of_thread;
    IF archive THEN
        DELETE FROM threadfold.entries WHERE thread = of_thread;
    END IF;
END $$;

-- Replaces the entries of a compaction. A process of an earlier version, which is still running, calls
-- the function without texts.
CREATE FUNCTION threadfold.write_entries(
    of_thread text, has_lease boolean, held bigint, of_compaction bigint, lines text[], texts text[],
    OUT outcome text
) LANGUAGE plpgsql AS $$
BEGIN
    outcome := threadfold.write_entries(of_thread, has_lease, held, of_compaction, lines);
    IF outcome IS NULL THEN
        UPDATE threadfold.entries SET text = texts[entries.number]
            WHERE thread = of_thread AND compaction = of_compaction;
    END IF;
END $$;
