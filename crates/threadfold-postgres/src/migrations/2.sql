ALTER TABLE threadfold.logs ADD COLUMN base_seq bigint;
ALTER TABLE threadfold.logs ADD COLUMN base text;  -- what the events before base_seq amount to

-- Keeps what the first events of a log amount to, if the log has this id and as many events.
CREATE FUNCTION threadfold.save_base(
    of_thread text, of_log text, seq_of_base bigint, of_base text
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM threadfold.lock(of_thread);
    UPDATE threadfold.logs SET base_seq = seq_of_base, base = of_base
        WHERE thread = of_thread AND log = of_log AND coalesce(base_seq, 0) < seq_of_base
        AND EXISTS (SELECT FROM threadfold.events
                    WHERE events.thread = of_thread AND seq = seq_of_base - 1);
END $$;
