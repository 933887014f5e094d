//! One node over one family: what is written for it, what it has shown, and what that proves.

use std::time::Duration;

use crate::{
    core::{clock::Monotonic, cluster::ConnectionId},
    fence::generation::Generation,
};

/// A write of a family's markers. Numbers grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId(pub u64);

/// Whether a node's answers are of use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Nobody knows yet.
    #[default]
    Unknown,
    /// It answers.
    Answers,
    /// It does not; in words.
    Silent(String),
    /// What answers is no kube-proxy whose order is known, or there is nothing to ask; in words.
    Stranger(String),
}

/// What a node has shown over its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Shown {
    /// Not what is written.
    #[default]
    Other,
    /// What is written; by which write, if the connection was open before that.
    Current(Option<WriteId>),
    /// What was written before `write` changed it, over this connection; by which write `before` that was.
    Awaited { write: WriteId, before: Option<WriteId>, began: Monotonic },
}

/// One node over one family.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Track {
    written: Option<Generation>,
    connection: Option<ConnectionId>,
    shown: Shown,
    /// Everything from before this write began is in the node's rules: it has shown this write, and another that began
    /// after that, over one connection.
    proven: Option<WriteId>,
    /// When the newest request was sent that was answered over the connection.
    stood_at: Option<Monotonic>,
    pub(super) reach: Reach,
    /// When it last showed a marker, and how long that took.
    pub(super) last: Option<(Monotonic, Duration)>,
}

impl Track {
    /// What the API has of it.
    pub(super) fn written(&self) -> Option<Generation> {
        self.written
    }

    /// What was read from the API, where it is not what we wrote there: somebody else did.
    pub(super) fn load(&mut self, written: Option<Generation>) {
        if self.written != written || matches!(self.shown, Shown::Awaited { .. }) {
            self.shown = Shown::Other;
        }
        self.written = written;
    }

    /// A new connection: another process, as far as anybody knows.
    pub(super) fn opened(&mut self, connection: ConnectionId) {
        self.connection = Some(connection);
        self.forget_the_process();
    }

    /// The connection is no more.
    pub(super) fn closed(&mut self, connection: ConnectionId) {
        if self.connection == Some(connection) {
            self.connection = None;
            self.forget_the_process();
        }
    }

    /// All connections are closed.
    pub(super) fn rest(&mut self) {
        self.connection = None;
        self.reach = Reach::Unknown;
        self.forget_the_process();
    }

    fn forget_the_process(&mut self) {
        self.shown = Shown::Other;
        self.proven = None;
        self.stood_at = None;
    }

    /// An answer to a request that was sent at `sent_at`. `acknowledged` is the newest write that the API server has taken:
    /// before that is known, what looks like our write may be another writer's. Returns how long the marker took, if one
    /// showed.
    pub(super) fn answer(
        &mut self,
        connection: ConnectionId,
        sent_at: Monotonic,
        now: Monotonic,
        value: Option<Generation>,
        acknowledged: Option<WriteId>,
    ) -> Option<Duration> {
        if self.connection != Some(connection) {
            return None;
        }
        self.reach = Reach::Answers;
        self.stood_at = self.stood_at.max(Some(sent_at));
        let shows = value.is_some() && value == self.written;
        match self.shown {
            Shown::Awaited { write, before, began } if shows && Some(write) <= acknowledged => {
                self.proven = self.proven.max(before);
                self.shown = Shown::Current(Some(write));
                let took = now.since(began);
                self.last = Some((now, took));
                return Some(took);
            }
            Shown::Other if shows => self.shown = Shown::Current(None),
            Shown::Current(_) if !shows => self.shown = Shown::Other,
            Shown::Awaited { .. } | Shown::Current(_) | Shown::Other => {}
        }
        None
    }

    /// Whether its value may advance.
    pub(super) fn is_ready(&self) -> bool {
        matches!(self.shown, Shown::Current(_))
    }

    /// Whether it may be ready soon.
    pub(super) fn may_be_ready(&self) -> bool {
        !matches!(self.reach, Reach::Silent(_) | Reach::Stranger(_))
    }

    /// Its value advances, by a write that begins now.
    pub(super) fn advance(&mut self, write: WriteId, began: Monotonic) {
        if let Shown::Current(before) = self.shown {
            self.shown = Shown::Awaited { write, before, began };
            self.written = self.written.map(Generation::next);
        }
    }

    /// It is given its first value.
    pub(super) fn begin(&mut self) {
        self.written = Some(Generation::FIRST);
        self.shown = Shown::Other;
    }

    /// Whether everything from before the write after `after` began is in its rules.
    pub(super) fn proves(&self, after: WriteId) -> bool {
        self.proven.is_some_and(|proven| proven > after)
    }

    /// When the connection is last known to have stood.
    pub(super) fn stood_at(&self) -> Option<Monotonic> {
        self.stood_at
    }

    /// What is still to come, in words.
    pub(super) fn awaits(&self, after: WriteId) -> &'static str {
        match self.shown {
            _ if self.connection.is_none() => "there is no connection to its kube-proxy",
            Shown::Other => "its rules do not show what was written before",
            Shown::Current(Some(write)) | Shown::Awaited { before: Some(write), .. } if write > after => {
                "its rules have shown the first marker, and not yet the second"
            }
            Shown::Current(_) | Shown::Awaited { .. } => "its rules have not shown the first marker",
        }
    }
}
