//! Deserializing a content block.

use serde::{Deserialize, Deserializer, de, de::value::MapAccessDeserializer};
use serde_json::{Map, Value};

use super::{content::ContentBlock, cow_str::CowStr};

impl<'de> Deserialize<'de> for ContentBlock {
    /// Deserializes the block straight into its struct if `type` comes first, as in everything that
    /// this crate writes. The derived form would buffer every block and lose the raw text of tool
    /// inputs.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(BlockVisitor)
    }
}

struct BlockVisitor;

impl<'de> de::Visitor<'de> for BlockVisitor {
    type Value = ContentBlock;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a content block with a `type`")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<ContentBlock, A::Error> {
        let mut buffered = Map::new();
        while let Some(CowStr(key)) = map.next_key()? {
            if key != "type" {
                buffered.insert(key.into_owned(), map.next_value()?);
                continue;
            }
            let CowStr(kind) = map.next_value()?;
            if buffered.is_empty() {
                return ContentBlock::read(&kind, MapAccessDeserializer::new(map));
            }
            while let Some((key, value)) = map.next_entry()? {
                buffered.insert(key, value);
            }
            return read_buffered(&kind, buffered).map_err(de::Error::custom);
        }
        Err(de::Error::missing_field("type"))
    }
}

/// Reads a block whose `type` does not come first. Not generic: otherwise every crate that reads
/// messages would compile the readers of all kinds of blocks a second time.
fn read_buffered(kind: &str, fields: Map<String, Value>) -> serde_json::Result<ContentBlock> {
    ContentBlock::read(kind, Value::Object(fields))
}
