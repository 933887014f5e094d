//! List and watch of one resource, as the core relies on it (C10): a list is one step, every version is told one by one,
//! and a watch goes on where it stopped; only where the API server cannot do that is there another list.
//!
//! Not `kube::runtime::watcher`: a drain has to know how long the API server has been silent, `Retry-After` counts for all
//! requests together, and what a list holds is converted page by page, so that no more than one page is held in full.

use std::{fmt::Debug, time::Duration};

use futures_util::{StreamExt, pin_mut};
use kube::{
    Api, Resource,
    api::{ListParams, WatchEvent, WatchParams},
};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout};

use super::{
    access::Access,
    refusal::Refusal,
    sink::{Closed, Sink},
};
use crate::core::cluster::ClusterEvent;

/// How many objects a page has: a slice of a thousand endpoints has some 300 KiB.
const PAGE: u32 = 100;

/// How long one watch lasts. A connection that has died unnoticed is noticed after that.
const WATCH: Duration = Duration::from_secs(10);

/// How much longer than [`WATCH`] nothing may come.
const GRACE: Duration = Duration::from_secs(2);

/// The first and the longest wait after a request that failed.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(4));

/// How long one page may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A resource that is followed.
pub(super) trait Followed:
    Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static
{
    /// What the core is told of one.
    type Core: Send;
    /// Made of an object, with how many of its parts were left out; `None` for one without a name.
    fn convert(&self) -> Option<(Self::Core, u32)>;
    /// A complete list.
    fn listed(all: Vec<Self::Core>) -> ClusterEvent;
    /// A new version.
    fn written(one: Self::Core) -> ClusterEvent;
    /// It is gone.
    fn removed(one: &Self::Core) -> ClusterEvent;
    /// It cannot be read; in words.
    fn unreadable(why: String) -> ClusterEvent;
}

/// Lists and watches until nobody takes the events any more.
pub(super) async fn follow<K: Followed>(api: Api<K>, access: Access, sink: Sink, patience: Duration) {
    let follower = Follower { api, access, sink, patience, began: Instant::now(), listed: false, backoff: BACKOFF.0 };
    // That nobody listens any more is how it ends.
    if let Err(Closed) = follower.run().await {}
}

struct Follower<K> {
    api: Api<K>,
    access: Access,
    sink: Sink,
    /// For how long an API server that has never answered is waited for.
    patience: Duration,
    began: Instant,
    listed: bool,
    backoff: Duration,
}

impl<K: Followed> Follower<K> {
    async fn run(mut self) -> Result<(), Closed> {
        loop {
            let mut version = match self.list().await {
                Ok((all, version)) => {
                    self.listed = true;
                    self.backoff = BACKOFF.0;
                    self.sink.tell(K::listed(all)).await?;
                    version
                }
                Err(refusal) => {
                    self.refused(&refusal).await?;
                    continue;
                }
            };
            loop {
                self.access.turn().await;
                match self.watch(&mut version).await? {
                    Ok(()) => self.backoff = BACKOFF.0,
                    Err(Refusal::Expired) => break,
                    Err(refusal) => self.wait(&refusal).await,
                }
            }
        }
    }

    /// All objects, page by page. Without a `resourceVersion`: at least as new as the request.
    async fn list(&mut self) -> Result<(Vec<K::Core>, String), Refusal> {
        let (mut all, mut page) = (Vec::new(), ListParams::default().limit(PAGE));
        loop {
            self.access.turn().await;
            let list = match timeout(PATIENCE.min(self.patience.max(Duration::from_secs(1)) * 2), self.api.list(&page))
                .await
            {
                Ok(Ok(list)) => list,
                Ok(Err(error)) => return Err((&error).into()),
                Err(_elapsed) => return Err(Refusal::timed_out()),
            };
            for object in &list.items {
                all.extend(self.convert(object));
            }
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Ok((all, list.metadata.resource_version.unwrap_or_default())),
            }
        }
    }

    /// One watch, from `version` on, which it moves. `Ok` when it has ended as it should.
    async fn watch(&mut self, version: &mut String) -> Result<Result<(), Refusal>, Closed> {
        let seconds = u32::try_from(WATCH.as_secs()).unwrap_or(u32::MAX);
        let parameters = WatchParams::default().timeout(seconds);
        let deadline = Instant::now() + WATCH + GRACE;
        let events = match tokio::time::timeout_at(deadline, self.api.watch(&parameters, version)).await {
            Ok(Ok(events)) => events,
            Ok(Err(error)) => return Ok(Err((&error).into())),
            Err(_elapsed) => return Ok(Err(Refusal::timed_out())),
        };
        pin_mut!(events);
        loop {
            let event = match tokio::time::timeout_at(deadline, events.next()).await {
                Ok(Some(Ok(event))) => event,
                Ok(None) => return Ok(Ok(())),
                Ok(Some(Err(error))) => return Ok(Err((&error).into())),
                Err(_elapsed) => return Ok(Err(Refusal::timed_out())),
            };
            let (object, removed) = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                WatchEvent::Deleted(object) => (object, true),
                WatchEvent::Bookmark(bookmark) => {
                    *version = bookmark.metadata.resource_version;
                    continue;
                }
                WatchEvent::Error(status) => return Ok(Err(Refusal::of(&status))),
            };
            if let Some(core) = self.convert(&object) {
                self.sink.tell(if removed { K::removed(&core) } else { K::written(core) }).await?;
            }
            // Only now: what has not been told is asked for again.
            if let Some(of_object) = object.meta().resource_version.clone() {
                *version = of_object;
            }
        }
    }

    fn convert(&self, object: &K) -> Option<K::Core> {
        let converted = object.convert();
        self.sink.left_out(converted.as_ref().map_or(1, |(_, left_out)| *left_out));
        converted.map(|(core, _)| core)
    }

    /// A list was refused.
    async fn refused(&mut self, refusal: &Refusal) -> Result<(), Closed> {
        let never_reached = !self.access.has_answered() && self.began.elapsed() >= self.patience;
        match refusal {
            Refusal::Denied(why) => self.sink.tell(K::unreadable(why.clone())).await?,
            // A fault makes a drain longer. What has never worked is none: it is how this pod is set up.
            Refusal::Failed(why) if never_reached && !self.listed => {
                let why = format!("{why}; it has never answered this agent");
                self.sink.tell(K::unreadable(why)).await?;
            }
            Refusal::Failed(_) | Refusal::Absent | Refusal::Expired | Refusal::Conflict => {}
        }
        self.wait(refusal).await;
        Ok(())
    }

    async fn wait(&mut self, refusal: &Refusal) {
        tracing::debug!(resource = %K::plural(&()), why = refusal.words(), "asking the API server again");
        let jitter = fastrand::f64().mul_add(0.5, 0.75);
        tokio::time::sleep(self.backoff.mul_f64(jitter)).await;
        self.backoff = (self.backoff * 2).min(BACKOFF.1);
    }
}
