//! Reads the state file once and writes it when there is something new, in a thread of its own: a disk that is slow or hangs keeps no
//! drain, no answer and no start waiting.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    time::Duration,
};

use tokio::{sync::oneshot, time::timeout};

use super::{content, content::State, file};
use crate::{
    report::Report,
    telemetry::metrics::{Metrics, StateRead, StateWrite},
};

/// Nothing is deep here.
const STACK: usize = 256 * 1024;

/// Keeps the state file, where one is wanted.
#[derive(Debug, Default)]
pub struct Keeper {
    writes: Option<mpsc::Sender<State>>,
    earlier: Option<oneshot::Receiver<Vec<Report>>>,
    done: Option<oneshot::Receiver<()>>,
}

impl Keeper {
    /// Begins, with a look at what an agent before this one has left. Without a path, or where no thread can be had, nothing is kept.
    pub fn start(path: Option<PathBuf>, metrics: Arc<Metrics>) -> Self {
        let Some(path) = path else { return Self::default() };
        let (writes, to_write) = mpsc::channel();
        let (found, earlier) = oneshot::channel();
        let (working, done) = oneshot::channel();
        let work = move || {
            // Gone with the thread, whatever becomes of it.
            let _working: oneshot::Sender<()> = working;
            // Nobody waits for it any more if the agent stops at once.
            found.send(read(&path, &metrics)).ok();
            keep(&path, &to_write, &metrics);
        };
        match std::thread::Builder::new().name("state".to_owned()).stack_size(STACK).spawn(work) {
            Ok(_) => Self { writes: Some(writes), earlier: Some(earlier), done: Some(done) },
            Err(error) => {
                tracing::warn!(%error, "no thread for the state file: the courses of drains go with the agent");
                Self::default()
            }
        }
    }

    /// The courses that an agent before this one has left; only once. Never ready where there are none to come.
    pub async fn earlier(&mut self) -> Vec<Report> {
        let Some(earlier) = &mut self.earlier else { return std::future::pending().await };
        let reports = earlier.await.unwrap_or_default();
        self.earlier = None;
        reports
    }

    /// Whether anything is kept.
    pub fn is_wanted(&self) -> bool {
        self.writes.is_some()
    }

    /// Has this written, as soon as that can be.
    pub fn write(&self, state: State) {
        if let Some(writes) = &self.writes {
            // A thread that is gone has said why.
            writes.send(state).ok();
        }
    }

    /// Lets what is to be written be written, for at most `grace`.
    pub async fn finish(self, grace: Duration) {
        drop(self.writes);
        if let Some(done) = self.done
            && timeout(grace, done).await.is_err()
        {
            tracing::warn!("the state file was not written by the time at which the agent stopped");
        }
    }
}

fn read(path: &Path, metrics: &Metrics) -> Vec<Report> {
    let place = path.display();
    let bytes = match file::read(path) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => {
            metrics.state_read(StateRead::Absent);
            return Vec::new();
        }
        Err(error) => {
            metrics.state_read(StateRead::Failed);
            tracing::warn!("the drains of before this start are not known: {error}");
            return Vec::new();
        }
    };
    match content::found(&bytes) {
        Ok(found) => {
            let whole = found.unreadable == 0;
            metrics.state_read(if whole { StateRead::Read } else { StateRead::Partly });
            if !whole {
                let (gone, all) = (found.unreadable, found.unreadable + found.state.reports.len());
                tracing::warn!("{gone} of {all} drains in the state file {place} are of a version that cannot be read");
            }
            if let Some(since) = found.state.under_way {
                tracing::warn!(
                    "an agent before this one ended while a drain was under way, since {since}: its course is lost"
                );
            }
            found.state.reports
        }
        Err(why) => {
            let newer = matches!(why, content::Unusable::Newer { .. });
            metrics.state_read(if newer { StateRead::Newer } else { StateRead::Damaged });
            tracing::warn!(
                "the drains of before this start are not known: the state file {place} cannot be used, and is replaced with \
                 the next drain: {why}"
            );
            Vec::new()
        }
    }
}

/// Until nobody sends any more.
fn keep(path: &Path, to_write: &mpsc::Receiver<State>, metrics: &Metrics) {
    let mut said = None;
    while let Ok(state) = to_write.recv() {
        // Of several, the newest has all.
        let state = std::iter::from_fn(|| to_write.try_recv().ok()).last().unwrap_or(state);
        let written =
            content::text(&state).and_then(|text| file::write(path, &text).map_err(|error| error.to_string()));
        match written {
            Ok(()) => {
                metrics.state_written(StateWrite::Written);
                if said.take().is_some() {
                    tracing::info!("the courses of drains are kept again in {}", path.display());
                }
            }
            Err(why) => {
                metrics.state_written(StateWrite::Failed);
                // Once, for as long as it is the same.
                if said.as_ref() != Some(&why) {
                    tracing::warn!("the courses of drains go with the agent: {why}; drains are held as ever");
                    said = Some(why);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{core::verdict::Reason, report::tests::report_of};

    #[tokio::test]
    async fn what_one_agent_keeps_the_next_one_finds() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        let report = report_of(Reason::Quiet, 1, 10);
        for before in [vec![], vec![report.clone()]] {
            let mut keeper = Keeper::start(Some(path.clone()), Arc::new(Metrics::new()));
            assert_eq!(keeper.earlier().await, before);
            for reports in [vec![], vec![report.clone()]] {
                keeper.write(State { reports, under_way: None });
            }
            keeper.finish(Duration::from_secs(10)).await;
        }
    }

    #[tokio::test]
    async fn without_a_path_nothing_is_kept_and_nothing_waited_for() {
        let mut keeper = Keeper::start(None, Arc::new(Metrics::new()));
        assert!(!keeper.is_wanted());
        assert!(timeout(Duration::from_millis(1), keeper.earlier()).await.is_err());
        keeper.write(State::default());
        keeper.finish(Duration::from_secs(10)).await;
    }
}
