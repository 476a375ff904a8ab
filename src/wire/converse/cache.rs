//! Cache points: marks of their own behind what is to be cached.
//!
//! Where they stand in a body they are kept. None may come first in a message, behind a document,
//! a video or reasoning, or behind another one, and there may be four in a body.

use super::{
    blocks::CACHE_POINT,
    forms::NAME,
    normal::{KINDS, is_point, key},
    target::Target,
};
use crate::{
    message::{CacheMarks, ContentBlock, Json, Message, Opaque, Role, ToolSpec},
    wire::{
        contract::Change,
        extras::keep,
        fields::Fields,
        normal::{CacheMark, Thread, settle_marks},
        notes::Notes,
        raw::Raw,
        tree::{Object, Tree},
    },
};

/// The parts of a body that can hold cache points, in the order in which they are cached.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    pub(super) tools: &'a mut Vec<ToolSpec>,
    pub(super) system: &'a mut [Message],
    pub(super) thread: &'a mut Thread,
}

/// Where a point stands, or is to be put in, in the order in which points are cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Tool(usize),
    System(usize, usize),
    Block(usize, usize),
}

/// The longer of the two lives of a cache point; without one it lives five minutes.
const HOUR: &str = "1h";

impl Parts<'_> {
    /// Places cache points if asked to, and takes out what may not be there.
    pub(super) fn mark(mut self, asked: CacheMarks, target: &Target, notes: &mut Notes) {
        self.tidy(notes);
        let mut marks = self.marks();
        match asked {
            CacheMarks::Off => {}
            CacheMarks::Auto => self.add_wishes(&mut marks, target),
        }
        let mut changes: Vec<(Place, Option<Json>)> =
            settle_marks(&mut marks, notes).into_iter().map(|place| (place, None)).collect();
        let wishes = marks.iter().filter(|mark| mark.is_wish);
        changes.extend(wishes.map(|mark| (mark.place, Some(point(mark.is_long)))));
        // From the end on, so that the places before stay what they are.
        changes.sort_by_key(|(place, _)| std::cmp::Reverse(*place));
        for (place, point) in changes {
            self.change(place, point);
        }
    }

    /// Takes out the points that stand where none may.
    fn tidy(&mut self, notes: &mut Notes) {
        notes.turn_to(None);
        let (before, mut last_takes) = (self.tools.len(), false);
        self.tools.retain(|tool| {
            let is_point = is_point_tool(tool);
            let stays = !is_point || last_takes;
            last_takes = !is_point;
            stays
        });
        note_dropped(before - self.tools.len(), notes);
        let mut last_takes = false;
        for message in self.system.iter_mut() {
            tidy_message(message, &mut last_takes, |block| !is_point(block), notes);
        }
        for (at, message) in self.thread.iter_mut() {
            notes.turn_to(*at);
            tidy_message(message, &mut false, takes_point, notes);
        }
        self.thread.retain(|(_, message)| !message.content.is_empty());
    }

    fn marks(&self) -> Vec<CacheMark<Place>> {
        let tools = self.tools.iter().enumerate().filter(|(_, tool)| is_point_tool(tool));
        let tools = tools.map(|(index, tool)| {
            let is_long = tool.extra.get(NAME, CACHE_POINT).is_some_and(|it| is_long(Raw::of(it)));
            CacheMark { place: Place::Tool(index), is_wish: false, is_long }
        });
        let system = self.system.iter().enumerate().flat_map(|(index, message)| {
            points(message).map(move |(place, is_long)| (Place::System(index, place), is_long))
        });
        let thread = self.thread.iter().enumerate().flat_map(|(index, (_, message))| {
            points(message).map(move |(place, is_long)| (Place::Block(index, place), is_long))
        });
        let blocks = system.chain(thread);
        tools
            .chain(blocks.map(|(place, is_long)| CacheMark { place, is_wish: false, is_long }))
            .collect()
    }

    /// Wishes for a point behind the tools, the system prompt and the last message of the user.
    fn add_wishes(&self, marks: &mut Vec<CacheMark<Place>>, target: &Target) {
        let (of_thread, of_tools) = target.caches();
        let mut wish = |place| marks.push(CacheMark { place, is_wish: true, is_long: false });
        if of_tools && self.tools.last().is_some_and(|last| !is_point_tool(last)) {
            wish(Place::Tool(self.tools.len()));
        }
        if !of_thread {
            return;
        }
        let mut prompt = self.system.iter().enumerate().rev();
        if let Some((index, message)) = prompt.find(|(_, message)| !message.content.is_empty())
            && message.content.last().is_some_and(|last| !is_point(last))
        {
            wish(Place::System(index, message.content.len()));
        }
        let mut said = self.thread.iter().enumerate().rev();
        let last = said.find(|(_, (_, message))| message.role == Role::User);
        let Some((index, (_, message))) = last else { return };
        if let Some(place) = message.content.iter().rposition(takes_point)
            && message.content.get(place + 1).is_none_or(|next| !is_point(next))
        {
            wish(Place::Block(index, place + 1));
        }
    }

    /// Puts a point in, or takes the one there out.
    fn change(&mut self, place: Place, point: Option<Json>) {
        let (message, index) = match place {
            Place::Tool(index) => return self.change_tools(index, point),
            Place::System(message, index) => (self.system.get_mut(message), index),
            Place::Block(message, index) => {
                (self.thread.get_mut(message).map(|(_, message)| message), index)
            }
        };
        let Some(content) = message.map(|message| &mut message.make_mut().content) else { return };
        match point {
            Some(point) => content.insert(index, Opaque::new(NAME, point).into()),
            None => drop(content.remove(index)),
        }
    }

    fn change_tools(&mut self, index: usize, point: Option<Json>) {
        let Some(point) = point else {
            self.tools.remove(index);
            return;
        };
        let fields = Fields::parse(point.as_str());
        let extra = keep(NAME, fields.as_ref(), Vec::new());
        let tool = ToolSpec { extra, ..ToolSpec::new(CACHE_POINT, "", Json::default()) };
        self.tools.insert(index, tool);
    }
}

/// Takes the points out of a message that stand where none may.
fn tidy_message(
    message: &mut Message,
    last_takes: &mut bool,
    takes: fn(&ContentBlock) -> bool,
    notes: &mut Notes,
) {
    let mut content = message.content.clone();
    content.retain(|block| {
        let stays = !is_point(block) || *last_takes;
        *last_takes = takes(block);
        stays
    });
    let dropped = message.content.len() - content.len();
    if dropped > 0 {
        note_dropped(dropped, notes);
        *message = message.with_content(content);
    }
}

fn note_dropped(count: usize, notes: &mut Notes) {
    if count > 0 {
        notes.note(Change::CacheMarksDropped { count });
    }
}

fn point(is_long: bool) -> Json {
    let mut inner = Object::default().with("type", "default");
    inner.set_some("ttl", is_long.then_some(HOUR));
    Tree::from(Object::default().with(CACHE_POINT, inner)).into_json()
}

/// The points of a message, and whether each lives long.
fn points(message: &Message) -> impl Iterator<Item = (usize, bool)> {
    let blocks = message.content.iter().enumerate();
    blocks.filter(|(_, block)| is_point(block)).map(|(place, block)| {
        let ContentBlock::Opaque(opaque) = block else { return (place, false) };
        let fields = Fields::parse(opaque.value.as_str());
        (place, fields.and_then(|fields| fields.get(CACHE_POINT)).is_some_and(is_long))
    })
}

/// Whether a tool is a cache point among the tools.
pub(super) fn is_point_tool(tool: &ToolSpec) -> bool {
    !tool.input_schema.is_object() && tool.extra.get(NAME, CACHE_POINT).is_some()
}

/// Whether what stands before a point stays in the cache for an hour.
fn is_long(point: Raw<'_>) -> bool {
    let ttl = Fields::of(point).and_then(|mut fields| fields.take_text("ttl"));
    ttl.is_some_and(|ttl| ttl == HOUR)
}

/// Whether a point may stand behind a block.
fn takes_point(block: &ContentBlock) -> bool {
    !matches!(key(block), Some("document" | "video" | CACHE_POINT)) && !(KINDS.is_reasoning)(block)
}
