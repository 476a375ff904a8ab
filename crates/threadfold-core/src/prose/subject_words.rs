//! Words of grammar, which do not belong to the subject of a statement, in a few languages.

use std::{collections::HashMap, sync::LazyLock};

use super::demand_words::spoken_words;

/// The function of a word in a statement. A word may have several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Grammar(u32);

impl Grammar {
    pub(super) const STOP: Self = Self(1);
    pub(super) const DETERMINER: Self = Self(1 << 1);
    pub(super) const RELATION: Self = Self(1 << 2);
    pub(super) const COPULA: Self = Self(1 << 3);
    pub(super) const CHANGE: Self = Self(1 << 4);
    pub(super) const SWAP: Self = Self(1 << 5);
    pub(super) const NEGATION: Self = Self(1 << 6);
    pub(super) const EXCEPTION: Self = Self(1 << 7);
    pub(super) const PAST: Self = Self(1 << 8);
    pub(super) const MUSING: Self = Self(1 << 9);
    pub(super) const TALK: Self = Self(1 << 10);
    pub(super) const CONJUNCTION: Self = Self(1 << 11);
    const BACKWARD: Self = Self(1 << 12);
    const WISH: Self = Self(1 << 13);
    const DEMAND: Self = Self(1 << 14);
    pub(super) const CURRENCY: Self = Self(1 << 15);
    pub(super) const TIME_UNIT: Self = Self(1 << 16);
    pub(super) const MONTH: Self = Self(1 << 17);
    pub(super) const NUMBER: Self = Self(1 << 18);
    pub(super) const SHORT_FORM: Self = Self(1 << 19);
    pub(super) const ARTICLE: Self = Self(1 << 20);
    /// Words that do not belong to the subject of a statement.
    const EMPTY: Self =
        Self(Self::STOP.0 | Self::COPULA.0 | Self::CHANGE.0 | Self::NEGATION.0 | Self::EXCEPTION.0);

    /// Returns the functions of a word in lower case.
    pub(super) fn of(word: &str) -> Self {
        GRAMMAR.get(word).copied().unwrap_or_default()
    }

    pub(super) fn is(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }

    pub(super) fn is_empty(self) -> bool {
        self.is(Self::EMPTY)
    }
}

/// The words of all lists. A word is looked up once instead of in each list.
static GRAMMAR: LazyLock<HashMap<&str, Grammar>> = LazyLock::new(|| {
    let mut table: HashMap<&str, Grammar> = HashMap::new();
    for (list, does) in [
        (STOPS, Grammar::STOP),
        (DETERMINERS, Grammar::DETERMINER),
        (RELATIONS, Grammar::RELATION),
        (COPULAS, Grammar::COPULA),
        (CHANGES, Grammar::CHANGE),
        (SWAPS, Grammar::SWAP),
        (NEGATIONS, Grammar::NEGATION),
        (EXCEPTIONS, Grammar::EXCEPTION),
        (PAST, Grammar::PAST),
        (MUSINGS, Grammar::MUSING),
        (TALK, Grammar::TALK),
        (CONJUNCTIONS, Grammar::CONJUNCTION),
        (BACKWARD, Grammar::BACKWARD),
        (WISHES, Grammar::WISH),
        (DEMANDS, Grammar::DEMAND),
        (CURRENCIES, Grammar::CURRENCY),
        (UNITS_OF_TIME, Grammar::TIME_UNIT),
        (MONTHS, Grammar::MONTH),
        (NUMBERS, Grammar::NUMBER),
        (SHORT_FORMS, Grammar::SHORT_FORM),
        (ARTICLES, Grammar::ARTICLE),
    ] {
        for word in list.split_whitespace() {
            table.entry(word).or_default().0 |= does.0;
        }
    }
    table
});

/// Words of grammar, and words that are too general to name a subject.
const STOPS: &str = " a an the this that these those my your our their his her its it i we you they \
    i'd i'm i've we're we've it's he she me us them of in on at to for from by with as into onto over under above below up out off and or \
    but so if then than when while been being have has had do does did done may can could will would shall should must need \
    needs let use uses used using want wants wanted user user's users please just also only any all every each get got \
    no not never always here there what which who how why where very more most some such same other else nobody current \
    currently latest still yet work working works working preferred rather today run runs running ran hosted live lives located \
    stored keep keeps stay stays go goes going take takes taken took place about past until before after around again one ones \
    der die das den dem des ein eine einen einem einer eines und oder aber ich wir ihr sie er es mein meine unser unsere f\u{fc}r \
    mit von zu zum zur im am auf aus bei nach \u{fc}ber unter bitte nur alle jede jeder muss m\u{fc}ssen soll wenn um wurde wird werden haben hat \
    el la los las un una unos unas y o pero de del en con por para al a que mi su nuestro nuestra se lo le les si \
    todo todos toda todas cada solo debe deben cuando favor usa usar ha sido \
    du des et ou \u{e0} au aux dans sur pour par avec ce cette mon ma notre nos votre il elle nous vous qui que ";

/// Words before a noun.
const DETERMINERS: &str = " the our my his her their this a an der die das unser unsere mein meine el la los las \
    nuestro nuestra mi un una le les notre mon ma ";

/// Words between a noun and a noun that qualifies it.
const RELATIONS: &str = " of for in on from with to at f\u{fc}r von im am aus bei auf de del en para con du des pour dans sur ";

/// Verbs that state a property or a value.
const COPULAS: &str = " is are was were be equals means ist sind war bleibt lautet es son est\u{e1} est\u{e1}n era ser \
    est sont \u{e8} sono ";

/// Words that announce a change.
const CHANGES: &str = " since seit grown shrunk report\u{e9} report\u{e9}e reporte now new changed changes moved moves updated update switched renamed instead actually swapped \
    correction upgraded downgraded rescheduled relocated reassigned replaced rotated postponed extended raised lowered reduced \
    increased dropped became becomes anymore rebased \
    jetzt neu neue neuer neues nun ge\u{e4}ndert statt stattdessen verschoben verlegt erh\u{f6}ht gesenkt gestiegen gesunken gewechselt \
    ersetzt k\u{fc}nftig inzwischen umbenannt korrektur \
    ahora nuevo nueva cambi\u{f3} cambiado cambiamos movi\u{f3} movido pas\u{f3} trasladado subi\u{f3} baj\u{f3} actualizado aplazado \
    correcci\u{f3}n ya d\u{e9}sormais maintenant nouveau nouvelle chang\u{e9} d\u{e9}plac\u{e9} remplac\u{e9} correction ";

/// Phrases that announce a change.
pub(super) const ANNOUNCEMENTS: [&str; 21] = [
    "brought forward",
    "cut to ",
    "from today",
    "second thought",
    "ab heute",
    "desde hoy",
    "pushed back",
    "put off",
    "went up",
    "went down",
    "as of ",
    "from here on",
    "these days",
    "no longer",
    "not any more",
    "ab sofort",
    "von nun an",
    "ab jetzt",
    "nicht mehr",
    "a partir de",
    "\u{e0} partir de",
];

/// Words between two things of one kind.
const CONJUNCTIONS: &str = " of to and or von bis und oder y o de et ou ";

/// Verbs whose object is the thing that was given up: `I swapped the tea for coffee`.
const SWAPS: &str = " swapped replaced exchanged ";

/// Announcements of a change in scripts without spaces between words.
pub(super) const UNSPACED_CHANGES: [&str; 23] = [
    "\u{5ef6}\u{671f}",
    "\u{73b0}\u{5728}",
    "\u{6539}\u{4e3a}",
    "\u{6539}\u{6210}",
    "\u{6539}\u{5230}",
    "\u{6539}\u{7528}",
    "\u{6362}\u{6210}",
    "\u{6362}\u{5230}",
    "\u{53d8}\u{6210}",
    "\u{53d8}\u{4e3a}",
    "\u{8c03}\u{6574}",
    "\u{63a8}\u{8fdf}",
    "\u{63d0}\u{524d}",
    "\u{79fb}\u{5230}",
    "\u{642c}\u{5230}",
    "\u{66f4}\u{65b0}",
    "\u{66f4}\u{6b63}",
    "\u{4e0d}\u{518d}",
    "\u{5df2}\u{6539}",
    "\u{5909}\u{66f4}",
    "\u{5909}\u{308f}",
    "\u{306b}\u{306a}\u{308a}\u{307e}\u{3057}\u{305f}",
    "\u{8a02}\u{6b63}",
];

/// Copulas in scripts without spaces.
pub(super) const UNSPACED_COPULAS: [&str; 5] =
    ["\u{662f}", "\u{4e3a}", "\u{5728}", "\u{306f}", "\u{3067}\u{3059}"];

/// Negations in scripts without spaces.
pub(super) const UNSPACED_NEGATIONS: [&str; 10] = [
    "\u{7edd}\u{5bf9}\u{4e0d}",
    "\u{6c7a}\u{3057}\u{3066}",
    "\u{4e0d}\u{8981}",
    "\u{4e0d}\u{5f97}",
    "\u{4e0d}\u{80fd}",
    "\u{4e0d}\u{8bb8}",
    "\u{7981}\u{6b62}",
    "\u{5207}\u{52ff}",
    "\u{522b}",
    "\u{306a}\u{3044}",
];

/// Words of negation and prohibition.
const NEGATIONS: &str = " ne aucun aucune ning\u{fa}n ninguna weder can't cannot mustn't never not no don't dont nie niemals nicht kein keine keinen nunca no jam\u{e1}s jamais pas ";

/// Words before an exception from a prohibition: `no visit without Ada`.
const EXCEPTIONS: &str = " without unless except ohne au\u{df}er sin salvo sans sauf ";

/// Verbs and words of the past.
const PAST: &str = " estaba estaban hab\u{ed}a hatten gestern ayer yesterday was were had used war waren hatte era eran fue \u{e9}tait \u{e9}taient ";

/// Words of suppositions and of reports of others' words.
const MUSINGS: &str = " could would might suppose supposing assume assuming imagine perhaps maybe heard says said told thinks \
    guess idea joking wonder apparently k\u{f6}nnte k\u{f6}nnten w\u{fc}rde vielleicht angenommen falls geh\u{f6}rt sagt meint \
    podr\u{ed}a quiz\u{e1}s supongamos dice dicen o\u{ed} pourrait peut-\u{ea}tre supposons dit ";

/// Parts of suppositions and of reports of others' words in scripts without spaces.
pub(super) const UNSPACED_MUSINGS: [&str; 10] = [
    "\u{5982}\u{679c}",
    "\u{5047}\u{8bbe}",
    "\u{5047}\u{5982}",
    "\u{542c}\u{8bf4}",
    "\u{4e5f}\u{8bb8}",
    "\u{53ef}\u{80fd}",
    "\u{4ee5}\u{524d}",
    "\u{304b}\u{3082}",
    "\u{3082}\u{3057}",
    "\u{53bb}\u{5e74}",
];

/// First words of small talk: about the speaker, the listener, or the text before.
const TALK: &str = " i i'm i'll i've i'd you you're it it's that that's this these those there so well ok okay hm hmm ah \
    oh yes yeah no nope thanks thank great nice good cool sorry sure right anyway maybe perhaps what he she they \
    ich du sie es das danke gut sch\u{f6}n ja nein na ach tja vielleicht yo t\u{fa} eso esto gracias bien s\u{ed} bueno quiz\u{e1}s \
    je tu \u{e7}a c'est merci oui non bon peut-\u{ea}tre ";

/// First words of a sentence about something that the previous sentence names.
const BACKWARD: &str = " it it's its they their them he she his her that this these those otherwise er sie es ihn ihm ihre dies dieser dieses \
    ello ella ellos esto eso il elle ils elles cela ";

/// Words of preferences and goals.
const WISHES: &str = " fan fond sooner enjoy enjoys bore bores mejor mejores besser bevorzugt mieux want wants need needs goal goals aim trying target purpose hope ziel brauche brauchen soll sollen will wollen m\u{f6}chten \
    quiero queremos necesito necesitamos objetivo meta espero veux voulons faut besoin objectif but prefer prefers preferred like likes love hate dislike rather favourite favorite \
    liebsten lieber mag m\u{f6}chte bevorzuge hasse prefiero gusta gustan odio encanta pr\u{e9}f\u{e8}re aime d\u{e9}teste ";

const UNSPACED_WISHES: [&str; 12] = [
    "\u{76ee}\u{6807}",
    "\u{9700}\u{8981}",
    "\u{60f3}",
    "\u{76ee}\u{6a19}",
    "\u{5fc5}\u{8981}",
    "\u{305f}\u{3044}",
    "\u{559c}\u{6b22}",
    "\u{504f}\u{597d}",
    "\u{5e0c}\u{671b}",
    "\u{8ba8}\u{538c}",
    "\u{597d}\u{304d}",
    "\u{5acc}\u{3044}",
];

/// Whether a sentence begins with a word that refers to something in the previous sentence.
pub(crate) fn refers_back(sentence: &str) -> bool {
    let words: Vec<String> = spoken_words(sentence).take(3).map(str::to_lowercase).collect();
    let first = words.first().is_some_and(|word| Grammar::of(word).is(Grammar::BACKWARD));
    let object = words.get(1).is_some_and(|word| matches!(word.as_str(), "it" | "them"));
    first || object
}

/// Whether a statement expresses a preference or a goal of the user.
pub(crate) fn has_wish(statement: &str) -> bool {
    (!statement.is_ascii() && UNSPACED_WISHES.iter().any(|part| statement.contains(part)))
        || spoken_words(statement)
            .take(80)
            .any(|word| Grammar::of(&word.to_lowercase()).is(Grammar::WISH))
}

/// Units of amounts.
const CURRENCIES: &str = " dollars dollar euros euro eur usd gbp chf yuan yen pounds pound francs franken pesos \
    percent prozent procent \u{20ac} $ \u{a3} % \u{5143} \u{5186} ";

/// Words after the hour.
const UNITS_OF_TIME: &str = " am pm a.m p.m uhr o'clock ";

/// Names of months.
const MONTHS: &str = " january february march april may june july august september october november december \
    jan feb mar apr jun jul aug sep sept oct nov dec januar februar m\u{e4}rz mai juni juli oktober dezember \
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre \
    janvier f\u{e9}vrier mars avril juin juillet ao\u{fb}t septembre octobre novembre d\u{e9}cembre ";

/// Numbers in words.
const NUMBERS: &str = " two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen \
    seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million \
    zwei drei vier f\u{fc}nf sechs sieben acht neun zehn elf zw\u{f6}lf zwanzig drei\u{df}ig vierzig f\u{fc}nfzig hundert tausend \
    dos tres cuatro cinco seis siete ocho nueve diez once doce veinte treinta cuarenta cincuenta cien mil \
    deux trois quatre cinq sept huit neuf dix onze douze vingt trente quarante cinquante cent mille ";

/// Abbreviations whose point does not end a sentence.
const SHORT_FORMS: &str = " dr mr mrs ms prof st no nr sr sra fr hr vs ca approx ";

/// German articles. A capital after them is a noun, not a name.
const ARTICLES: &str = " der das den dem des ein eine einen einem einer eines unser unsere unserem unseren mein meine \
    zum zur vom beim im kein keine die neue neuer neues neuen ";

/// Words that demand something, in languages other than English.
const DEMANDS: &str = " nie niemals immer stets nur jedem jeder jedes jede kein keine keinen bitte muss m\u{fc}ssen \
    soll sollen darf d\u{fc}rfen statt bevor wenn ohne nicht nunca jam\u{e1}s siempre s\u{f3}lo solo cada debe deben \
    prohibido obligatorio antes cuando ninguna ning\u{fa}n jamais toujours chaque seulement mai sempre ogni ";

/// Parts of demands in languages without spaces between words.
const UNSPACED_DEMANDS: [&str; 14] = [
    "\u{4e0d}\u{8981}",
    "\u{4e0d}\u{5f97}",
    "\u{4e0d}\u{80fd}",
    "\u{4e0d}\u{8bb8}",
    "\u{522b}",
    "\u{5fc5}\u{987b}",
    "\u{603b}\u{662f}",
    "\u{59cb}\u{7ec8}",
    "\u{6bcf}\u{6b21}",
    "\u{53ea}",
    "\u{8bf7}",
    "\u{7981}\u{6b62}",
    "\u{4e4b}\u{524d}",
    "\u{5148}",
];

/// Whether a statement has a word that demands something in a language other than English. This
/// only ranks the statement above other typed text, so a wrong answer loses nothing.
pub(crate) fn asks_in_any_language(statement: &str) -> bool {
    if !statement.is_ascii() && UNSPACED_DEMANDS.iter().any(|part| statement.contains(part)) {
        return true;
    }
    let mut words = spoken_words(statement).take(80);
    words.any(|word| Grammar::of(&word.to_lowercase()).is(Grammar::DEMAND))
}
