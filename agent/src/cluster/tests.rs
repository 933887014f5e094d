//! The observer against an API server that does as it is told.

use std::{
    collections::BTreeMap,
    io::Write,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{sync::mpsc, time::Instant};

use super::{
    Access, Observer, OwnPod, Told,
    scripted_server::{Does, Server, http},
};
use crate::{
    config::{Pod, Routing},
    core::{
        cluster::{ClusterEvent, ObservationId, ReadId, ReadOutcome},
        event::Event,
        termination::PodRead,
    },
};

/// How long any of this may take before it has failed.
const DEADLINE: Duration = Duration::from_secs(30);

const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const POD: &str = "/api/v1/namespaces/default/pods/web-1";

struct World {
    server: Server,
    observer: Observer,
    events: mpsc::Receiver<Event>,
    own_pod: mpsc::Receiver<OwnPod>,
    _file: tempfile::NamedTempFile,
}

impl World {
    async fn with(does: impl Fn(&str, &BTreeMap<String, String>) -> Does + Send + Sync + 'static) -> Self {
        let server = Server::start(move |_, target| {
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            let query = query.split('&').filter_map(|pair| pair.split_once('='));
            does(path, &query.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
        })
        .await;
        Self::of(server, Duration::from_millis(100))
    }

    fn of(server: Server, timeout: Duration) -> Self {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let cluster = json!({"server": format!("http://{}", server.address)});
        let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "a",
            "clusters": [{"name": "a", "cluster": cluster}], "users": [{"name": "a", "user": {}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}]});
        write!(file, "{kubeconfig}").expect("written");
        let pod = Pod { name: "web-1".to_owned(), namespace: "default".to_owned(), ..Pod::default() };
        let mut routing = Routing { kube_proxy_healthz_port: 0, ..Routing::default() };
        routing.poll.timeout = timeout;
        let access = Access::by_file(file.path().to_str().expect("UTF-8"));
        let (observer, Told { events, own_pod }) = Observer::new(access, pod, routing);
        Self { server, observer, events, own_pod, _file: file }
    }

    async fn begin(&mut self) {
        self.observer.begin(ObservationId(1)).await;
    }

    /// The next event that `wanted` makes something of.
    async fn next<T>(&mut self, mut wanted: impl FnMut(&ClusterEvent) -> Option<T>) -> T {
        let found = async {
            loop {
                if let Event::Cluster(ObservationId(1), event) = self.events.recv().await.expect("it goes on")
                    && let Some(found) = wanted(&event)
                {
                    return found;
                }
            }
        };
        tokio::time::timeout(DEADLINE, found).await.expect("in time")
    }
}

fn slice(name: &str, version: u32) -> Value {
    let metadata =
        json!({"name": name, "resourceVersion": version.to_string(), "labels": {"kubernetes.io/service-name": "web"}});
    json!({"metadata": metadata, "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": []})
}

fn list(items: &[Value], version: u32, token: Option<&str>) -> Does {
    let mut metadata = json!({"resourceVersion": version.to_string()});
    if let Some(token) = token {
        metadata["continue"] = token.into();
    }
    Does::Answers(http(
        200,
        &json!({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items}).to_string(),
    ))
}

fn nothing(_: &str) -> Does {
    list(&[], 1, None)
}

fn refused(code: u16, message: &str) -> Does {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message, "reason": "x"});
    Does::Answers(http(code, &status.to_string()))
}

/// A watch that tells these events, and then ends or goes on.
fn watch(events: &[Value], ends: bool) -> Does {
    let mut answer =
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for event in events {
        let line = format!("{event}\n");
        answer.extend(format!("{:x}\r\n{line}\r\n", line.len()).bytes());
    }
    if ends {
        answer.extend(b"0\r\n\r\n");
    }
    Does::Answers(answer)
}

fn of_slices(event: &ClusterEvent) -> Option<String> {
    let version = |slice: &crate::core::cluster::Slice| format!("{}@{}", slice.name, slice.version);
    match event {
        ClusterEvent::SlicesListed(slices) => Some(format!("{:?}", slices.iter().map(version).collect::<Vec<_>>())),
        ClusterEvent::SliceWritten(slice) => Some(version(slice)),
        ClusterEvent::SliceRemoved(name) => Some(format!("{name} removed")),
        ClusterEvent::SlicesUnreadable(why) => Some(format!("unreadable: {why}")),
        _ => None,
    }
}

#[tokio::test]
async fn c10_a_list_is_one_step_every_version_is_told_and_a_watch_goes_on_where_it_stopped() {
    let (watches, lists) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
    let (seen, counted) = (Arc::clone(&watches), Arc::clone(&lists));
    let mut world = World::with(move |path, query| match (path, query.get("watch")) {
        (SLICES, None) if query.contains_key("continue") => list(&[slice("b", 2)], 10, None),
        (SLICES, None) if counted.fetch_add(1, Ordering::SeqCst) == 0 => list(&[slice("a", 1)], 10, Some("more")),
        (SLICES, None) => list(&[slice("c", 50)], 60, None),
        (SLICES, Some(_)) => {
            let mut seen = seen.lock().expect("nobody panicked");
            seen.push(query.get("resourceVersion").cloned().unwrap_or_default());
            let event = |kind: &str, object: Value| json!({"type": kind, "object": object});
            match seen.len() {
                1 => {
                    let written = [event("MODIFIED", slice("a", 11)), event("MODIFIED", slice("a", 12))];
                    watch(&[written[0].clone(), written[1].clone(), event("DELETED", slice("b", 13))], true)
                }
                2 => {
                    let metadata = json!({"resourceVersion": "40", "creationTimestamp": null});
                    let mark = json!({"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "metadata": metadata});
                    watch(&[event("BOOKMARK", mark)], true)
                }
                3 => refused(500, "not now"),
                4 => watch(&[event("ERROR", json!({"kind": "Status", "code": 410, "message": "too old", "status": "Failure", "reason": "Expired"}))], true),
                _ => watch(&[], false),
            }
        }
        _ => nothing(path),
    })
    .await;
    world.begin().await;
    let mut told = Vec::new();
    for _ in 0..5 {
        told.push(world.next(of_slices).await);
    }
    assert_eq!(told, ["[\"a@1\", \"b@2\"]", "a@11", "a@12", "b removed", "[\"c@50\"]"]);
    let watches = watches.lock().expect("nobody panicked").clone();
    assert_eq!(watches[..4], ["10", "13", "40", "40"], "a fault loses no place");
}

#[tokio::test]
async fn retry_after_is_obeyed_by_every_request() {
    let times = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&times);
    let mut world = World::with(move |path, _| {
        let mut seen = seen.lock().expect("nobody panicked");
        seen.push((Instant::now(), path.to_owned()));
        if path == SLICES && seen.iter().filter(|(_, path)| path == SLICES).count() == 1 {
            let body = "Too many requests, please try again later.";
            return Does::Answers(
                format!(
                    "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 2\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                )
                .into_bytes(),
            );
        }
        nothing(path)
    })
    .await;
    world.begin().await;
    world.next(|event| matches!(event, ClusterEvent::SlicesListed(_)).then_some(())).await;
    let times = times.lock().expect("nobody panicked").clone();
    let asked: Vec<_> = times.iter().filter(|(_, path)| path == SLICES).map(|(at, _)| *at).collect();
    assert!(asked[1] - asked[0] >= Duration::from_millis(1950), "{:?}", asked[1] - asked[0]);
    // Requests that were on their way are none that it could have obeyed.
    let between = times.iter().filter(|(at, _)| (500..1950).contains(&(*at - asked[0]).as_millis())).count();
    assert_eq!(between, 0, "{times:?}");
}

#[tokio::test]
async fn what_is_forbidden_is_told_in_the_api_server_s_words() {
    let mut world = World::with(|_, _| refused(403, "endpointslices is forbidden: User \"a\" cannot list")).await;
    world.begin().await;
    let why = world.next(of_slices).await;
    assert!(why.contains("endpointslices is forbidden"), "{why}");
    let mut kinds = Vec::new();
    world.observer.read(ReadId(7));
    world.observer.read_pod(ReadId(8));
    while kinds.len() < 2 {
        match world.events.recv().await.expect("it goes on") {
            Event::PodRead(ReadId(8), PodRead::Forbidden(_)) => kinds.push("pod"),
            Event::Cluster(_, event) => {
                if let ClusterEvent::ConsistentRead(ReadId(7), outcome) = &*event {
                    assert!(matches!(outcome, ReadOutcome::Forbidden(_)), "{outcome:?}");
                    kinds.push("read");
                }
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn an_api_server_that_has_never_answered_is_told_and_one_that_has_is_awaited() {
    let mut nobody = World::with(|_, _| Does::Hangs).await;
    nobody.server.stop().await;
    nobody.begin().await;
    let why = nobody.next(of_slices).await;
    assert!(why.contains("never answered"), "{why}");

    // The same where it hangs, as behind an egress policy that drops.
    let mut silent = World::with(|_, _| Does::Hangs).await;
    silent.begin().await;
    assert!(silent.next(of_slices).await.contains("never answered"));

    let refusals = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&refusals);
    let mut broken = World::with(move |path, _| {
        if path == SLICES {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        refused(503, "starting")
    })
    .await;
    broken.begin().await;
    let deadline = Instant::now() + DEADLINE;
    while refusals.load(Ordering::SeqCst) < 4 {
        assert!(Instant::now() < deadline);
        tokio::task::yield_now().await;
        while let Ok(event) = broken.events.try_recv() {
            let Event::Cluster(_, event) = event else { continue };
            assert_eq!(of_slices(&event), None, "a fault makes no drain shorter");
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn c9_a_consistent_read_shows_names_and_versions_and_fails_as_a_whole() {
    let fails = Arc::new(AtomicUsize::new(0));
    let failing = Arc::clone(&fails);
    let mut world = World::with(move |path, query| match (path, query.get("resourceVersion"), query.get("watch")) {
        (_, _, Some(_)) => watch(&[], false),
        (SERVICES, None, None) if failing.load(Ordering::SeqCst) == 1 => refused(500, "no leader"),
        (SLICES, None, None) if query.contains_key("continue") => list(&[slice("b", 9)], 10, None),
        (SLICES, None, None) => list(&[slice("a", 8)], 10, Some("more")),
        (SERVICES, None, None) => list(&[json!({"metadata": {"name": "web", "resourceVersion": "5"}})], 10, None),
        (POD, ..) => {
            Does::Answers(http(404, r#"{"kind":"Status","code":404,"message":"not found","status":"Failure"}"#))
        }
        _ => refused(400, "a list that is not consistent"),
    })
    .await;
    world.begin().await;
    let listed = world.next(|event| matches!(event, ClusterEvent::ServicesListed(_)).then(|| event.clone())).await;
    world.observer.note(&listed);
    let read = |event: &ClusterEvent| match event {
        ClusterEvent::ConsistentRead(_, outcome) => Some(outcome.clone()),
        _ => None,
    };
    world.observer.read(ReadId(1));
    let ReadOutcome::Shows(shown) = world.next(read).await else { panic!("it shows") };
    let slices: Vec<_> = shown.slices.iter().map(|(name, version)| format!("{name}@{version}")).collect();
    let services: Vec<_> = shown.services.iter().map(|(name, version)| format!("{name}@{version}")).collect();
    assert_eq!((slices, services, shown.nodes), (vec!["a@8".into(), "b@9".into()], vec!["web@5".to_owned()], None));
    fails.store(1, Ordering::SeqCst);
    world.observer.read(ReadId(2));
    assert!(matches!(world.next(read).await, ReadOutcome::Failed(why) if why.contains("no leader")));
    world.observer.read_pod(ReadId(3));
    loop {
        if let Event::PodRead(ReadId(3), outcome) = world.events.recv().await.expect("it goes on") {
            assert_eq!(outcome, PodRead::Terminating, "a pod that is not there has been deleted");
            break;
        }
    }
}

#[tokio::test]
async fn at_rest_there_is_no_connection() {
    let mut world =
        World::with(|path, query| if query.contains_key("watch") { watch(&[], false) } else { nothing(path) }).await;
    assert_eq!(world.server.open(), 0);
    world.begin().await;
    world.next(|event| matches!(event, ClusterEvent::ServicesListed(_)).then_some(())).await;
    assert!(world.server.open() > 0);
    world.observer.forget();
    all_closed(&world.server).await;
}

fn own_pod(grace: u64) -> Does {
    let probe = json!({"tcpSocket": {"port": 8080}, "periodSeconds": 5});
    let spec = json!({"terminationGracePeriodSeconds": grace, "containers": [{"name": "web", "livenessProbe": probe}]});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-1", "uid": "1"}, "spec": spec});
    Does::Answers(http(200, &pod.to_string()))
}

async fn all_closed(server: &Server) {
    let deadline = Instant::now() + DEADLINE;
    while server.open() > 0 {
        assert!(Instant::now() < deadline, "{} connections stay", server.open());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn the_own_pod_is_read_once_at_the_start_and_no_connection_stays() {
    let mut world = World::with(|_, _| own_pod(120)).await;
    world.observer.read_own_pod();
    let own = tokio::time::timeout(DEADLINE, world.own_pod.recv()).await.expect("in time").expect("it goes on");
    assert_eq!((own.grace_period, own.probes.len()), (Some(Duration::from_mins(2)), 1));
    all_closed(&world.server).await;
    assert_eq!(world.server.requests.recv().await.map(|(_, path)| path).as_deref(), Some(POD));
    assert!(world.server.requests.try_recv().is_err(), "it is asked once");
}

#[tokio::test]
async fn a_fault_is_tried_again_and_a_right_that_is_missing_is_not() {
    for (code, requests) in [(503, 2), (403, 1)] {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let mut world = World::with(move |_, _| match counted.fetch_add(1, Ordering::SeqCst) {
            0 => refused(code, "not now"),
            _ => own_pod(40),
        })
        .await;
        world.observer.read_own_pod();
        if code == 503 {
            let own = tokio::time::timeout(DEADLINE, world.own_pod.recv()).await.expect("in time").expect("it goes on");
            assert_eq!(own.grace_period, Some(Duration::from_secs(40)));
        } else {
            while asked.load(Ordering::SeqCst) == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            all_closed(&world.server).await;
            // A second try would come within this.
            assert!(tokio::time::timeout(Duration::from_secs(3), world.own_pod.recv()).await.is_err());
        }
        all_closed(&world.server).await;
        assert_eq!(asked.load(Ordering::SeqCst), requests, "{code}");
    }
}

#[tokio::test]
async fn a_drain_tells_what_a_start_without_the_api_server_could_not() {
    let mut world = World::with(|path, query| match path {
        POD => own_pod(300),
        _ if query.contains_key("watch") => watch(&[], false),
        _ => nothing(path),
    })
    .await;
    let paths = |event: &ClusterEvent| match event {
        ClusterEvent::PodPaths(paths) => paths.is_empty().then_some(()),
        _ => None,
    };
    // Nobody takes it in: no drain waits for that.
    for _ in 0..3 {
        world.begin().await;
        world.next(paths).await;
    }
    let own = world.own_pod.try_recv().expect("it has been read");
    assert_eq!(own.grace_period, Some(Duration::from_mins(5)));
}
