//! S5: whether the pod is terminating, or only a container of it is restarted. kubelet calls a preStop hook for both, and
//! node-pressure eviction, preemption and node shutdown delete no pod: no single sign tells them apart at once.

use std::time::Duration;

use super::{clock::Monotonic, cluster::ReadId};

/// How long after a read that failed the next one is made, and how long the one after the guard is waited for at least.
const AGAIN: Duration = Duration::from_millis(250);

/// What shows that the pod is terminating. Each is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// The agent's own preStop hook was called: kubelet ends the agent's container too.
    OwnHook,
    /// SIGTERM came.
    Signal,
    /// A read of the pod shows a `deletionTimestamp`, or the condition `DisruptionTarget`.
    Pod,
    /// A slice lists the pod as terminating, which it derives from the `deletionTimestamp`.
    Slice,
}

/// What a consistent read of the pod shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodRead {
    /// It has a `deletionTimestamp`, or the condition `DisruptionTarget`.
    Terminating,
    /// It has neither.
    NotTerminating,
    /// A time-out, 5xx or 429: it is tried again; in words.
    Failed(String),
    /// The API is not configured, or does not let the agent read the pod: it is done without; in words.
    Forbidden(String),
}

/// Whether the pod is terminating, as far as is known in one drain.
#[derive(Clone, Debug)]
pub(super) struct Termination {
    /// Until when a sign may come that needs no read; `None` where the caller is believed.
    guarded_until: Option<Monotonic>,
    sign: Option<Sign>,
    /// A read within the guard showed that the pod was not terminating then.
    denied: bool,
    read: Read,
}

#[derive(Clone, Debug)]
enum Read {
    /// None is under way; the next is not to begin before this time.
    Due(Monotonic),
    /// One is under way.
    Asked { id: ReadId, at: Monotonic },
    /// There is none to be had; in words.
    Forbidden(String),
    /// One that began after the guard shows that the pod is not terminating.
    Refuted,
}

impl Termination {
    /// Nothing is known yet of the pod of a hook that is `called`. `guard` is `restartGuard`; `None` believes the caller.
    pub(super) fn new(guard: Option<Duration>, called: Monotonic) -> Self {
        Self { guarded_until: guard.map(|guard| called + guard), sign: None, denied: false, read: Read::Due(called) }
    }

    /// A sign came. `true` if it is the first.
    pub(super) fn shown(&mut self, sign: Sign) -> bool {
        let first = self.sign.is_none();
        self.sign.get_or_insert(sign);
        first
    }

    /// Begins a read of the pod, if one is wanted now.
    pub(super) fn ask(&mut self, id: ReadId, now: Monotonic) -> bool {
        let wanted = self.due().is_some_and(|due| due <= now);
        if wanted {
            self.read = Read::Asked { id, at: now };
        }
        wanted
    }

    /// When [`ask`](Self::ask) has something to ask.
    pub(super) fn due(&self) -> Option<Monotonic> {
        match self.read {
            Read::Due(due) if self.guarded_until.is_some() && self.sign.is_none() => Some(due),
            _ => None,
        }
    }

    /// What a read shows. One that was given up says nothing. `true` if it is the first sign.
    pub(super) fn answered(&mut self, id: ReadId, outcome: &PodRead, now: Monotonic) -> bool {
        let (Some(guarded_until), Read::Asked { id: asked, at }) = (self.guarded_until, &self.read) else {
            return false;
        };
        if *asked != id {
            return false;
        }
        self.denied |= *outcome == PodRead::NotTerminating;
        self.read = match outcome {
            PodRead::Terminating => Read::Due(now),
            // The pod may be deleted yet, or the own hook be on its way: only what is read after all that counts.
            PodRead::NotTerminating if *at < guarded_until => Read::Due(guarded_until),
            PodRead::NotTerminating => Read::Refuted,
            PodRead::Failed(_) => Read::Due(now + AGAIN),
            PodRead::Forbidden(why) => Read::Forbidden(why.clone()),
        };
        *outcome == PodRead::Terminating && self.shown(Sign::Pod)
    }

    /// The pod is known not to terminate: no sign within the guard, nor in a read that began after it.
    pub(super) fn is_refuted(&self) -> bool {
        self.sign.is_none() && matches!(self.read, Read::Refuted)
    }

    /// S4: from when on the server in the pod may be told, by what is known now.
    pub(super) fn tells_from(&self) -> Option<Monotonic> {
        match (self.guarded_until, self.sign) {
            (Some(_), None) if self.denied => None,
            (None, _) | (_, Some(_)) => Some(Monotonic::default()),
            (Some(guarded_until), None) if matches!(self.read, Read::Forbidden(_)) => Some(guarded_until),
            // The read that begins at the guard's end is waited for, but not for long.
            (Some(guarded_until), None) => Some(guarded_until + AGAIN),
        }
    }

    /// Why nobody knows that the pod is terminating, where nobody does.
    pub(super) fn unknown(&self) -> Option<&str> {
        match &self.read {
            _ if self.guarded_until.is_none() || self.sign.is_some() => None,
            Read::Forbidden(why) => Some(why),
            Read::Due(_) | Read::Asked { .. } => Some("the pod could not be read in time"),
            Read::Refuted => None,
        }
    }
}
