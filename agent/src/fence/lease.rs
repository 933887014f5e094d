//! Who of several replicas writes: a Lease, taken when somebody asks and given back soon after nobody does any more.
//!
//! That two write at once is avoided by it and not excluded; it would be slow and not wrong, as every write names the version
//! that it replaces.

use std::time::Duration;

use k8s_openapi::{
    api::coordination::v1::{Lease as ApiLease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{Api, Client, api::PostParams};
use tokio::time::{Instant, timeout};

use crate::cluster::Refusal;

/// The Lease's name.
const NAME: &str = "lastsyn-fence";

/// For how long it is held without being renewed.
const DURATION: Duration = Duration::from_secs(8);

/// How often it is renewed.
pub(super) const RENEW_EVERY: Duration = Duration::from_millis(1500);

/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where the holder answers.
const ADDRESS: &str = "lastsyn.dev/address";

/// Who wrote last.
const LAST_HOLDER: &str = "lastsyn.dev/last-holder";

/// The Lease, as one replica deals with it.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    identity: String,
    /// Where this replica answers: `ADDRESS:PORT`; empty where it does not know.
    address: String,
    namespace: String,
    /// A holder that is not us, the version that was seen, and since when it has been.
    watched: Option<(String, Instant)>,
}

/// What came of trying.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tenure {
    /// It is ours.
    Ours(Held),
    /// Another has it.
    Theirs {
        /// Who.
        holder: String,
        /// Where he answers.
        address: Option<String>,
    },
}

/// A Lease that is ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    version: Option<String>,
    until: Instant,
    /// Another has taken it.
    lost: bool,
    /// Another held it before, and may have written just now.
    pub(super) taken_from_another: bool,
}

impl Lease {
    pub(super) fn new(identity: String, address: String, namespace: String) -> Self {
        Self { identity, address, namespace, watched: None }
    }

    pub(super) fn identity(&self) -> &str {
        &self.identity
    }

    fn api(&self, client: &Client) -> Api<ApiLease> {
        Api::namespaced(client.clone(), &self.namespace)
    }

    /// Tries to get it.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub(super) async fn acquire(&mut self, client: &Client) -> Result<Tenure, Refusal> {
        let api = self.api(client);
        let began = Instant::now();
        let found = match within(api.get_opt(NAME)).await? {
            Some(found) => found,
            None => match within(api.create(&PostParams::default(), &self.object(None, &self.identity))).await {
                Ok(made) => return Ok(Tenure::Ours(held(&made, began, false))),
                Err(Refusal::Conflict) => within(api.get(NAME)).await?,
                Err(refusal) => return Err(refusal),
            },
        };
        let spec = found.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.clone().unwrap_or_default();
        let annotation = |key: &str| found.metadata.annotations.as_ref().and_then(|all| all.get(key)).cloned();
        let there = annotation(ADDRESS).filter(|address| !address.is_empty());
        // Nobody else answers where we do: one who did has ended.
        let predecessor = there.as_ref().is_some_and(|address| *address == self.address);
        if !holder.is_empty() && holder != self.identity && !predecessor && !self.has_expired(&found, &spec) {
            return Ok(Tenure::Theirs { holder, address: there });
        }
        let last = annotation(LAST_HOLDER).unwrap_or(holder);
        let another = !last.is_empty() && last != self.identity && !is_long_ago(&spec);
        match within(api.replace(NAME, &PostParams::default(), &self.object(Some(&found), &self.identity))).await {
            Ok(ours) => {
                self.watched = None;
                Ok(Tenure::Ours(held(&ours, began, another)))
            }
            // Somebody else was faster.
            Err(Refusal::Conflict) => Ok(Tenure::Theirs { holder: "another replica".to_owned(), address: None }),
            Err(refusal) => Err(refusal),
        }
    }

    /// Renews it.
    ///
    /// # Errors
    /// See [`Refusal`]; [`Refusal::Conflict`]: it is not ours any more.
    pub(super) async fn renew(&self, client: &Client, held_before: &Held) -> Result<Held, Refusal> {
        let began = Instant::now();
        let mut object = self.object(None, &self.identity);
        object.metadata.resource_version.clone_from(&held_before.version);
        let renewed = within(self.api(client).replace(NAME, &PostParams::default(), &object)).await?;
        Ok(held(&renewed, began, false))
    }

    /// Gives it back. That this fails is no harm: it expires.
    pub(super) async fn release(&self, client: &Client, held_before: &Held) {
        let mut object = self.object(None, "");
        object.metadata.resource_version.clone_from(&held_before.version);
        if let Err(refusal) = within(self.api(client).replace(NAME, &PostParams::default(), &object)).await {
            tracing::debug!(why = refusal.words(), "the Lease was not given back; it expires");
        }
    }

    /// Whether its holder has gone: nobody has renewed it for as long as he is to, by our own clock; or by the clocks of
    /// both, where they would have to differ by minutes.
    fn has_expired(&mut self, found: &ApiLease, spec: &LeaseSpec) -> bool {
        if is_long_ago(spec) {
            return true;
        }
        let version = found.metadata.resource_version.clone().unwrap_or_default();
        match &self.watched {
            Some((seen, since)) if *seen == version => since.elapsed() > DURATION,
            _ => {
                self.watched = Some((version, Instant::now()));
                false
            }
        }
    }

    fn object(&self, before: Option<&ApiLease>, holder: &str) -> ApiLease {
        let annotations = [(ADDRESS, &self.address), (LAST_HOLDER, &self.identity)];
        ApiLease {
            metadata: ObjectMeta {
                name: Some(NAME.to_owned()),
                namespace: Some(self.namespace.clone()),
                resource_version: before.and_then(|before| before.metadata.resource_version.clone()),
                annotations: Some(annotations.map(|(key, value)| (key.to_owned(), value.clone())).into()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
                renew_time: Some(MicroTime(k8s_openapi::jiff::Timestamp::now())),
                ..LeaseSpec::default()
            }),
        }
    }
}

impl Held {
    /// Another has taken it.
    pub(super) fn lose(&mut self) {
        self.lost = true;
    }

    /// Whether it may be held by another by now: nothing is to be written before it has been renewed.
    pub(super) fn has_expired(&self) -> bool {
        self.lost || Instant::now() >= self.until
    }
}

fn held(object: &ApiLease, began: Instant, taken_from_another: bool) -> Held {
    Held { version: object.metadata.resource_version.clone(), until: began + DURATION, lost: false, taken_from_another }
}

/// Whether it was last renewed minutes ago, by the clocks of both.
fn is_long_ago(spec: &LeaseSpec) -> bool {
    let Some(MicroTime(renewed)) = &spec.renew_time else { return true };
    let since = k8s_openapi::jiff::Timestamp::now().duration_since(*renewed);
    since > k8s_openapi::jiff::SignedDuration::from_mins(2)
}

async fn within<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Refusal> {
    match timeout(PATIENCE, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err((&error).into()),
        Err(_elapsed) => Err(Refusal::timed_out()),
    }
}
