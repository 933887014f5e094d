//! The API server: one resource, one log of writes in the order of their resource versions.

/// The pod's endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Pod {
    Ready,
    /// Not ready, serving and terminating: the fallback where no other is ready.
    Serving,
    /// Not serving, or not listed.
    Gone,
}

/// An object of the resource: each is a slice of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Object {
    Marker,
    Pod,
    Other,
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Value {
    Pod(Pod),
    /// Whether the Service's other endpoint is ready.
    Other(bool),
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
    pub(crate) pod: Pod,
    pub(crate) other: bool,
    pub(crate) marker: u8,
}

impl Object {
    /// In the order of their names: the marker's is what breaks most.
    pub(crate) const ALL: [Self; 3] = [Self::Marker, Self::Pod, Self::Other];
}

impl Value {
    pub(crate) fn object(self) -> Object {
        match self {
            Self::Pod(_) => Object::Pod,
            Self::Other(_) => Object::Other,
            Self::Marker(_) => Object::Marker,
        }
    }

    /// A marker is in the fence's own Service; every other write is a relevant change.
    pub(crate) fn is_relevant(self) -> bool {
        self.object() != Object::Marker
    }
}

impl Log {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Every object after the first `version` writes.
    pub(crate) fn at(&self, version: usize) -> View {
        let mut view = View { pod: Pod::Ready, other: true, marker: 0 };
        for write in self.0.iter().take(version) {
            view.apply(write.value);
        }
        view
    }

    /// How many writes are older than `lag` ticks at `now`.
    pub(crate) fn older_than(&self, lag: u8, now: u8) -> usize {
        self.0.iter().take_while(|write| write.tick + lag < now).count()
    }

    /// How many writes of the pod's Service there are.
    pub(crate) fn relevant(&self) -> usize {
        self.0.iter().filter(|write| write.value.is_relevant()).count()
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
            Value::Pod(pod) => self.pod = pod,
            Value::Other(ready) => self.other = ready,
            Value::Marker(marker) => self.marker = marker,
        }
    }

    /// Whether rules made of this send new connections to the pod.
    pub(crate) fn routes(self) -> bool {
        self.pod == Pod::Ready || (self.pod == Pod::Serving && !self.other)
    }
}
