//! How the server speaks to the loop.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::{
    core::{event::CallerId, verdict::Verdict},
    drive::look::Look,
    observe::Observation,
    report::Report,
    sensor::Asker,
};

/// What can be asked of the loop.
pub enum Request {
    /// A hook was called.
    Drain {
        /// Where the verdict goes.
        answer: oneshot::Sender<(CallerId, oneshot::Receiver<Arc<Verdict>>)>,
    },
    /// The agent's own preStop hook was called.
    Mark,
    /// A request in kubelet's name came over this connection.
    KubeletAsked(Asker),
    /// Whether a process of this node opened a connection to the agent's own port.
    IsOfThisNode {
        /// The connection.
        asker: Asker,
        /// Where the answer goes.
        answer: oneshot::Sender<bool>,
    },
    /// A hook's caller went away.
    Leave(CallerId),
    /// Somebody asks for the courses of the last drains, and for what has been observed of the pod's termination.
    Report {
        /// Where the answer goes, oldest first.
        answer: oneshot::Sender<(Vec<Report>, Option<Observation>)>,
    },
    /// Somebody looks.
    Look {
        /// Where the answer goes.
        answer: oneshot::Sender<Look>,
    },
}

/// The server's end. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    requests: mpsc::UnboundedSender<Request>,
}

/// The loop has ended: the agent is stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the agent is stopping")]
pub struct Gone;

/// A hook's call that waits for its verdict. Dropping it tells the loop that the caller went away, which ends nothing.
pub struct Drain {
    caller: CallerId,
    verdict: oneshot::Receiver<Arc<Verdict>>,
    requests: mpsc::UnboundedSender<Request>,
}

/// Both ends.
pub fn channel() -> (Handle, mpsc::UnboundedReceiver<Request>) {
    let (requests, receiver) = mpsc::unbounded_channel();
    (Handle { requests }, receiver)
}

impl Handle {
    /// Calls the hook.
    ///
    /// # Errors
    ///
    /// If the agent is stopping.
    pub async fn drain(&self) -> Result<Drain, Gone> {
        let (answer, registered) = oneshot::channel();
        self.ask(Request::Drain { answer })?;
        let (caller, verdict) = registered.await.map_err(|oneshot::error::RecvError { .. }| Gone)?;
        Ok(Drain { caller, verdict, requests: self.requests.clone() })
    }

    /// Says that the agent's own preStop hook was called: the pod is terminating (S5).
    ///
    /// # Errors
    ///
    /// If the agent is stopping.
    pub fn mark(&self) -> Result<(), Gone> {
        self.ask(Request::Mark)
    }

    /// Says that a request in kubelet's name came over this connection.
    ///
    /// # Errors
    ///
    /// If the agent is stopping.
    pub fn kubelet_asked(&self, asker: Asker) -> Result<(), Gone> {
        self.ask(Request::KubeletAsked(asker))
    }

    /// Whether the kernel shows that a process of this node opened this connection to the agent's own port.
    ///
    /// # Errors
    ///
    /// If the agent is stopping.
    pub async fn is_of_this_node(&self, asker: Asker) -> Result<bool, Gone> {
        let (answer, told) = oneshot::channel();
        self.ask(Request::IsOfThisNode { asker, answer })?;
        told.await.map_err(|oneshot::error::RecvError { .. }| Gone)
    }

    /// Looks at the agent.
    ///
    /// # Errors
    ///
    /// If the agent is stopping.
    pub async fn look(&self) -> Result<Look, Gone> {
        let (answer, look) = oneshot::channel();
        self.ask(Request::Look { answer })?;
        look.await.map_err(|oneshot::error::RecvError { .. }| Gone)
    }

    /// The courses of the last drains that have ended, oldest first, and what has been observed of the pod's termination.
    ///
    /// # Errors
    ///
    /// If the agent is stopping.
    pub async fn report(&self) -> Result<(Vec<Report>, Option<Observation>), Gone> {
        let (answer, reports) = oneshot::channel();
        self.ask(Request::Report { answer })?;
        reports.await.map_err(|oneshot::error::RecvError { .. }| Gone)
    }

    fn ask(&self, request: Request) -> Result<(), Gone> {
        self.requests.send(request).map_err(|mpsc::error::SendError(_)| Gone)
    }
}

impl Drain {
    /// Waits for the verdict.
    ///
    /// # Errors
    ///
    /// If the agent stops first.
    pub async fn verdict(mut self) -> Result<Arc<Verdict>, Gone> {
        (&mut self.verdict).await.map_err(|oneshot::error::RecvError { .. }| Gone)
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        // After the verdict, or with the loop gone, there is nobody to tell.
        drop(self.requests.send(Request::Leave(self.caller)));
    }
}
