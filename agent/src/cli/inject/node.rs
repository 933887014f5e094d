//! A manifest's content. Unlike JSON's value of the rest of the program it keeps the order of its keys.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, SeqAccess, Visitor},
};

/// A part of a manifest.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Map),
}

/// A mapping, in the order of its keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Map(Vec<(String, Node)>);

// === impl Node ===

impl Node {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn map<const N: usize>(fields: [(&str, Self); N]) -> Self {
        Self::Map(Map(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()))
    }

    pub(super) fn as_map(&self) -> Option<&Map> {
        if let Self::Map(map) = self { Some(map) } else { None }
    }

    pub(super) fn as_map_mut(&mut self) -> Option<&mut Map> {
        if let Self::Map(map) = self { Some(map) } else { None }
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(super) fn as_number(&self) -> Option<u64> {
        if let Self::Unsigned(number) = self { Some(*number) } else { None }
    }

    pub(super) fn items(&self) -> &[Self] {
        if let Self::List(items) = self { items } else { &[] }
    }

    pub(super) fn items_mut(&mut self) -> &mut [Self] {
        if let Self::List(items) = self { items } else { &mut [] }
    }

    /// What is at a key; nothing where this is no mapping.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        self.as_map()?.get(key)
    }

    /// What is at the end of a path of keys.
    pub(super) fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    pub(super) fn at_mut(&mut self, path: &[&str]) -> Option<&mut Self> {
        path.iter().try_fold(self, |node, key| node.as_map_mut()?.get_mut(key))
    }

    /// The text at the end of a path; empty where there is none.
    pub(super) fn text_at(&self, path: &[&str]) -> &str {
        self.at(path).and_then(Self::as_text).unwrap_or_default()
    }
}

// === impl Map ===

impl Map {
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.0.iter_mut().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Sets a key where it is, or behind the others.
    pub(super) fn set(&mut self, key: &str, value: Node) {
        match self.get_mut(key) {
            Some(place) => *place = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.0.retain(|(name, _)| name != key);
    }

    /// The mapping at a key, made where there is none; nothing where something else is there.
    pub(super) fn map_at(&mut self, key: &str) -> Option<&mut Self> {
        self.made(key, || Node::Map(Self::default()))?.as_map_mut()
    }

    /// The list at a key, made where there is none; nothing where something else is there.
    pub(super) fn list_at(&mut self, key: &str) -> Option<&mut Vec<Node>> {
        match self.made(key, || Node::List(Vec::new()))? {
            Node::List(items) => Some(items),
            _ => None,
        }
    }

    fn made(&mut self, key: &str, empty: fn() -> Node) -> Option<&mut Node> {
        if matches!(self.get(key), None | Some(Node::Null)) {
            self.set(key, empty());
        }
        self.get_mut(key)
    }
}

// === impl Serialize, Deserialize ===

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => to.serialize_unit(),
            Self::Bool(value) => to.serialize_bool(*value),
            Self::Signed(value) => to.serialize_i64(*value),
            Self::Unsigned(value) => to.serialize_u64(*value),
            Self::Float(value) => to.serialize_f64(*value),
            Self::Text(value) => to.serialize_str(value),
            Self::List(items) => to.collect_seq(items),
            Self::Map(map) => to.collect_map(map.0.iter().map(|(key, value)| (key, value))),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Node;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a part of a manifest")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(u64::try_from(value).map_or(Node::Signed(value), Node::Unsigned))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Unsigned(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = from.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Node, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = from.next_entry()? {
            fields.push(field);
        }
        Ok(Node::Map(Map(fields)))
    }
}
