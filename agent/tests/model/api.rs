//! The API server: one resource, one log of writes in the order of their resource versions.

use std::fmt;

/// What a slice says of the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Pod {
    Ready,
    /// Not ready, serving and terminating: the fallback where no other is ready.
    Serving,
    /// Not ready, and not serving.
    Dead,
}

/// One version of a slice of the pod's Service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Content {
    /// `None` where it does not list the pod.
    pub(crate) pod: Option<Pod>,
    /// Whether an endpoint on the pod's node is ready; `None` where it does not list that one.
    pub(crate) near: Option<bool>,
    /// The same of an endpoint on another node.
    pub(crate) far: Option<bool>,
}

/// An object of the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Object {
    Marker,
    /// By its index.
    Slice(usize),
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Value {
    Slice(usize, Content),
    /// The fence's marker, all of one object; each value once.
    Marker(u8),
}

/// One write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Write {
    pub(crate) value: Value,
    pub(crate) tick: u8,
}

/// All writes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Log(pub(crate) Vec<Write>);

/// Every object at some version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct View {
    pub(crate) slices: [Content; 3],
    pub(crate) marker: u8,
}

impl Content {
    /// Of a slice that is not there, or lists nobody.
    pub(crate) const EMPTY: Self = Self { pod: None, near: None, far: None };

    pub(crate) const fn pod(pod: Pod) -> Self {
        Self { pod: Some(pod), ..Self::EMPTY }
    }

    pub(crate) const fn near(self, ready: bool) -> Self {
        Self { near: Some(ready), ..self }
    }

    pub(crate) const fn far(self, ready: bool) -> Self {
        Self { far: Some(ready), ..self }
    }
}

impl Object {
    pub(crate) const ALL: [Self; 4] = [Self::Marker, Self::Slice(0), Self::Slice(1), Self::Slice(2)];

    pub(crate) fn index(self) -> usize {
        match self {
            Self::Marker => 0,
            Self::Slice(slice) => slice + 1,
        }
    }
}

impl Value {
    pub(crate) fn object(self) -> Object {
        match self {
            Self::Slice(slice, _) => Object::Slice(slice),
            Self::Marker(_) => Object::Marker,
        }
    }

    /// Not of the fence's Service, which the agent does not watch.
    pub(crate) fn is_of_the_service(self) -> bool {
        self.object() != Object::Marker
    }
}

impl Log {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// How many writes are older than `lag` ticks at `now`.
    pub(crate) fn older_than(&self, lag: u8, now: u8) -> usize {
        self.0.iter().take_while(|write| write.tick + lag < now).count()
    }

    /// How many writes of the pod's Service there are.
    pub(crate) fn of_the_service(&self) -> usize {
        self.0.iter().filter(|write| write.value.is_of_the_service()).count()
    }

    /// The last write of an object among the first `version`, counted from 1; 0 where there is none.
    pub(crate) fn last_of(&self, object: Object, version: usize) -> usize {
        let written = self.0.iter().take(version).rposition(|write| write.value.object() == object);
        written.map_or(0, |index| index + 1)
    }
}

impl View {
    pub(crate) fn apply(&mut self, value: Value) {
        match value {
            Value::Slice(slice, content) => self.slices[slice] = content,
            Value::Marker(marker) => self.marker = marker,
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pod = self.pod.map(|pod| match pod {
            Pod::Ready => "the pod ready",
            Pod::Serving => "the pod serving",
            Pod::Dead => "the pod not serving",
        });
        let near = self.near.map(|ready| if ready { "near ready" } else { "near not ready" });
        let far = self.far.map(|ready| if ready { "far ready" } else { "far not ready" });
        let all: Vec<_> = [pod, near, far].into_iter().flatten().collect();
        f.write_str(if all.is_empty() { "nobody" } else { "" })?;
        f.write_str(&all.join(", "))
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Marker => "the marker",
            Self::Slice(0) => "slice A",
            Self::Slice(1) => "slice B",
            Self::Slice(_) => "slice C",
        })
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slice(slice, content) => write!(f, "{} lists {content}", Object::Slice(*slice)),
            Self::Marker(_) => write!(f, "{}", Object::Marker),
        }
    }
}
