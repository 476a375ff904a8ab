//! Words of general language with one meaning, and words with opposite meanings.

/// Returns the common form of words that mean the same beside a value. It begins with `=` if the
/// words name a kind of value, as `deadline` names a date.
pub(super) fn canonical(word: &str) -> Option<&'static str> {
    Some(match word {
        "limit" | "limits" | "limited" | "cap" | "capped" | "ceiling" | "maximum" | "max"
        | "exceed" | "exceeds" | "exceeding" | "pass" => "=limit",
        "spend" | "spending" | "spent" | "budget" => "=spend",
        "cost" | "costs" | "price" | "priced" | "fee" | "fees" | "expense" | "expenses" => "=cost",
        "date" | "dates" | "day" | "days" | "deadline" | "due" | "schedule" | "scheduled"
        | "timing" | "planned" | "plan" | "fixed" => "=date",
        "own" | "owns" | "owner" | "owned" | "belong" | "belongs" | "handle" | "handles"
        | "handling" | "responsible" | "charge" => "=owner",
        "name" | "named" | "call" | "called" | "calling" | "codename" | "alias" | "label"
        | "labelled" | "labeled" | "title" | "designated" => "=name",
        "state" | "status" | "progress" | "phase" | "stage" => "=state",
        "language" | "languages" => "=language",
        "style" | "tone" => "=style",
        "disclose" | "disclosed" | "share" | "shared" | "reveal" | "revealed" | "tell" | "leak"
        | "verraten" | "weitergeben" | "revelar" | "reveles" | "compartir" | "compartas" => TELL,
        "answers" | "answer" | "reply" | "replies" | "response" | "responses" => "answer",
        "leave" | "leaves" | "depart" | "departs" | "departure" => "depart",
        _ => return None,
    })
}

/// The common form of verbs that pass information on.
pub(super) const TELL: &str = "=tell";

/// Whether a common form names a kind of value.
pub(super) fn is_kind(word: &str) -> bool {
    word.starts_with('=')
}

/// Returns the number of a group of opposites, and which of them this word is.
pub(super) fn side(word: &str) -> Option<(u8, u8)> {
    Some(match word {
        "left" | "linke" | "linken" | "izquierda" | "izquierdo" | "gauche" => (0, 0),
        "right" | "rechte" | "rechten" | "derecha" | "derecho" | "droite" => (0, 1),
        "first" | "erste" | "ersten" | "primero" | "primera" | "premier" => (1, 0),
        "second" | "zweite" | "zweiten" | "segundo" | "segunda" => (1, 1),
        "third" | "dritte" | "dritten" | "tercero" | "tercera" => (1, 2),
        "last" | "letzte" | "letzten" | "\u{fa}ltimo" | "\u{fa}ltima" | "dernier" => (1, 3),
        "next" | "n\u{e4}chste" | "n\u{e4}chsten" | "pr\u{f3}ximo" | "pr\u{f3}xima" => (1, 4),
        "open" | "opens" | "opened" | "opening" | "\u{f6}ffnet" | "abre" | "ouvre" => (2, 0),
        "close" | "closes" | "closed" | "closing" | "schlie\u{df}t" | "cierra" | "ferme" => (2, 1),
        "start" | "starts" | "begin" | "begins" | "beginnt" | "empieza" | "commence" => (3, 0),
        "end" | "ends" | "finish" | "finishes" | "endet" | "termina" | "finit" => (3, 1),
        "leave" | "leaves" | "departs" | "departure" | "abfahrt" | "salida" => (4, 0),
        "arrive" | "arrives" | "arrival" | "ankunft" | "llega" | "llegada" => (4, 1),
        "minimum" | "min" | "least" | "mindestens" | "m\u{ed}nimo" => (5, 0),
        "maximum" | "max" | "most" | "h\u{f6}chstens" | "m\u{e1}ximo" => (5, 1),
        "morning" | "morgens" | "ma\u{f1}ana" | "matin" => (6, 0),
        "evening" | "abends" | "tarde" | "soir" => (6, 1),
        "night" | "nachts" | "noche" | "nuit" => (6, 2),
        "noon" | "afternoon" | "mittags" | "mediod\u{ed}a" => (6, 3),
        "primary" => (7, 0),
        "backup" | "secondary" | "fallback" => (7, 1),
        "upper" | "top" | "obere" | "oberen" => (8, 0),
        "lower" | "bottom" | "untere" | "unteren" => (8, 1),
        "internal" | "internally" | "inner" => (9, 0),
        "external" | "externally" | "outer" => (9, 1),
        "read" | "reads" => (10, 0),
        "write" | "writes" => (10, 1),
        "upload" | "uploads" => (11, 0),
        "download" | "downloads" => (11, 1),
        "out" | "outbound" | "hinflug" | "hinfahrt" | "ida" => (12, 0),
        "back" | "return" | "r\u{fc}ckflug" | "r\u{fc}ckfahrt" | "vuelta" => (12, 1),
        "check-in" => (16, 0),
        "check-out" => (16, 1),
        "old" | "alte" | "alten" | "vieja" | "viejo" | "antigua" | "antiguo" => (17, 0),
        "new" | "neue" | "neuen" | "nueva" | "nuevo" => (17, 1),
        "with" | "mit" | "con" | "avec" => (18, 0),
        "without" | "ohne" | "sin" | "sans" => (18, 1),
        "staging" => (13, 0),
        "production" | "prod" => (13, 1),
        "adult" | "adults" | "erwachsene" | "adultos" | "adultes" => (14, 0),
        "child" | "children" | "kids" | "kinder" | "ni\u{f1}os" | "enfants" => (14, 1),
        "north" => (15, 0),
        "south" => (15, 1),
        "east" => (15, 2),
        "west" => (15, 3),
        _ => return None,
    })
}
