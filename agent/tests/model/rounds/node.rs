//! One node's kube-proxy with one family, and its rules: of every object the version that they have.

/// The slices of two drains' pods, and the fence's slice.
pub(crate) const OBJECTS: usize = 3;
/// The fence's.
pub(crate) const MARKER: usize = 2;

/// Of each object, how long the log was with its newest write; 0: as it was before.
pub(crate) type View = [u8; OBJECTS];

/// One write of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Write {
    pub(crate) object: usize,
    /// Of the fence's slice: how many endpoints this node has.
    pub(crate) endpoints: u8,
    pub(crate) tick: u8,
}

/// All writes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Log(pub(crate) Vec<Write>);

/// A kube-proxy, and what it leaves in the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub(crate) process: u8,
    pub(crate) up: bool,
    started: u8,
    /// How many writes its watch has brought; `None` before its first list.
    brought: Option<u8>,
    /// What its handlers have.
    handled: View,
    /// What a list has of objects that they have not taken yet.
    listed: [Option<u8>; OBJECTS],
    /// A sync is due.
    due: bool,
    /// The snapshot of the sync that runs.
    sync: Option<View>,
    /// What is in the kernel, whoever wrote it.
    pub(crate) rules: View,
    /// What its process answers: how many endpoints of the fence are on this node.
    pub(crate) port: u8,
}

/// What it may do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Handle,
    HandleListed(usize),
    Relist(u8),
    StartSync,
    EndSync,
    Die,
    Start,
    FirstList(u8),
}

impl Log {
    pub(crate) fn len(&self) -> u8 {
        u8::try_from(self.0.len()).unwrap_or(u8::MAX)
    }

    /// What a list has that was taken after so many writes.
    pub(crate) fn view(&self, length: u8) -> View {
        let mut view = View::default();
        for (number, write) in (1..=length).zip(&self.0) {
            view[write.object] = number;
        }
        view
    }

    /// The fence's number of endpoints in a view; before its first write there is one.
    pub(crate) fn endpoints(&self, view: View) -> u8 {
        usize::from(view[MARKER]).checked_sub(1).map_or(1, |index| self.0[index].endpoints)
    }
}

impl Node {
    pub(crate) fn new() -> Self {
        Self {
            process: 1,
            up: true,
            started: 0,
            brought: Some(0),
            handled: View::default(),
            listed: [None; OBJECTS],
            due: false,
            sync: None,
            rules: View::default(),
            port: 1,
        }
    }

    pub(crate) fn steps(&self, log: &Log, first_list: u8, steps: &mut Vec<Step>) {
        if !self.up {
            steps.push(Step::Start);
            return;
        }
        steps.push(Step::Die);
        let Some(brought) = self.brought else {
            // It lists nothing older than `firstList` before its start.
            let surely = log.0.iter().filter(|write| write.tick + first_list <= self.started).count();
            steps.extend((u8::try_from(surely).unwrap_or(u8::MAX)..=log.len()).map(Step::FirstList));
            return;
        };
        let waits = self.listed.iter().enumerate().filter(|(_, version)| version.is_some());
        let before = steps.len();
        steps.extend(waits.map(|(object, _)| Step::HandleListed(object)));
        // What the watch brings after a list comes after it.
        if steps.len() == before && brought < log.len() {
            steps.push(Step::Handle);
        }
        steps.extend((brought + 1..=log.len()).map(Step::Relist));
        if self.sync.is_some() {
            steps.push(Step::EndSync);
        } else if self.due {
            steps.push(Step::StartSync);
        }
    }

    pub(crate) fn step(&mut self, step: Step, log: &Log, now: u8) {
        match step {
            Step::Handle => {
                let brought = self.brought.unwrap_or(0);
                self.handled[log.0[usize::from(brought)].object] = brought + 1;
                self.brought = Some(brought + 1);
                self.due = true;
            }
            Step::HandleListed(object) => {
                if let Some(version) = self.listed[object].take() {
                    self.due |= self.handled[object] != version;
                    self.handled[object] = version;
                }
            }
            Step::Relist(length) => {
                self.listed = log.view(length).map(Some);
                self.brought = Some(length);
            }
            Step::StartSync => {
                self.due = false;
                self.sync = Some(self.handled);
            }
            Step::EndSync => {
                if let Some(snapshot) = self.sync.take() {
                    self.rules = snapshot;
                    self.port = log.endpoints(snapshot);
                }
            }
            Step::Die => {
                *self =
                    Self { up: false, brought: None, rules: self.rules, process: self.process, port: 0, ..Self::new() };
            }
            Step::Start => {
                self.up = true;
                self.process += 1;
                self.started = now;
            }
            Step::FirstList(length) => {
                self.handled = log.view(length);
                self.brought = Some(length);
                self.due = true;
            }
        }
    }
}
