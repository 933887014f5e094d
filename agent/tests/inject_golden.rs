//! `lastsyn inject` on manifests as people write them, in `tests/inject`: what it makes of each, byte for byte. With
//! `LASTSYN_WRITE_GOLDEN=1` it writes what it makes, to be read before it is committed.

#![expect(clippy::expect_used, clippy::panic, reason = "a failing helper fails its test")]

use std::{
    fs,
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
};

/// Name, arguments, and what standard error says.
const CASES: [(&str, &[&str], &str); 7] = [
    ("single", &[], ""),
    (
        "several",
        &["deployment/shop", "--namespace", "shop"],
        "lastsyn: inject: deployment/shop: container metrics has ports and gets no hook: kubelet stops it at once, whatever \
         still comes; --all-containers gives it one\n\
         lastsyn: inject: deployment/shop: the readiness probe of container shop is not httpGet, and stays as it is: the \
         agent does not fail it\n",
    ),
    ("all-containers", &["--all-containers", "--keep-probes", "--namespace=shop", "--mode=container"], ""),
    ("hook-replaced", &["deploy/slow", "--replace-hook", "--namespace=default", "--security=net-raw"], ""),
    (
        "list",
        &["deployment/api", "--service-account", "api"],
        "lastsyn: inject: deployment/api: the ServiceAccount api has to have the rights of the agent, which docs/cluster.md \
         names\n",
    ),
    (
        "stateful-set",
        &["sts/store"],
        "lastsyn: inject: statefulset/store: the readiness probe of container store is not httpGet, and stays as it is: the \
         agent does not fail it\n\
         lastsyn: inject: statefulset/store: it names no namespace, and the rights are for pods in `default`; --namespace \
         names another\n",
    ),
    (
        "host-network",
        &["ds/edge", "--namespace=default"],
        "lastsyn: inject: daemonset/edge: its pods have hostNetwork, and the agent's container is privileged: its sensor has \
         to see the node's control groups\n",
    ),
];

struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn inject(arguments: &[&str], manifests: &str) -> Ended {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lastsyn"))
        .arg("inject")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // A command that refuses its arguments reads nothing.
    drop(child.stdin.take().expect("piped").write_all(manifests.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/inject").join(name)
}

fn file(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn makes_of_each_what_is_written_down_and_nothing_more_the_second_time() {
    for (name, arguments, told) in CASES {
        let made = inject(arguments, &file(&format!("{name}.in.yaml")));
        assert_eq!((made.code, made.stderr.as_str()), (Some(0), told), "{name}");
        if std::env::var_os("LASTSYN_WRITE_GOLDEN").is_some() {
            fs::write(path(&format!("{name}.out.yaml")), &made.stdout).expect("written");
        }
        assert_eq!(made.stdout, file(&format!("{name}.out.yaml")), "{name}");
        let again = inject(arguments, &made.stdout);
        assert_eq!((again.code, again.stdout), (Some(0), made.stdout), "{name}");
        assert!(again.stderr.contains("have an agent already"), "{name}: {}", again.stderr);
    }
}

#[test]
fn documents_that_are_not_concerned_stay_as_they_are() {
    let before = file("single.in.yaml");
    let made = inject(&[], &before).stdout;
    let parts: Vec<&str> = before.split("---\n").collect();
    for part in [parts.first(), parts.last()].into_iter().flatten() {
        assert!(made.contains(part), "{made}");
    }
    assert!(made.contains("---\n# Its pods.\napiVersion"), "{made}");
}

#[test]
fn what_cannot_be_injected_is_refused_with_the_reason() {
    let list = file("list.in.yaml");
    for (manifests, arguments, code, told) in [
        (file("hook-refused.in.yaml").as_str(), &[][..], 1, "container slow has a preStop hook already"),
        (&file("windows.in.yaml"), &[], 1, "deployment/iis: its pods are for Windows nodes"),
        (&list, &[], 1, "one has to be named: deployment/worker, deployment/api"),
        (&list, &["deployment/api"], 1, "--service-account api keeps it"),
        (&list, &["deployment/api", "--service-account=b"], 1, "--service-account names b"),
        (&list, &["deployment/shop"], 1, "deployment/shop is not in these manifests; there is deployment/worker"),
        (&list, &["worker"], 2, "KIND/NAME"),
        (&list, &["pod/worker"], 2, "none of deployment, daemonset and statefulset"),
        (&list, &["--max-wait", "0s"], 2, "--max-wait = 0s"),
        (&list, &["--stop-reserve", "1s"], 2, "at least 2 s"),
        (&list, &["--security", "all"], 2, "net-raw"),
        (&list, &["deployment/worker", "--container=b"], 1, "no container b"),
        (&file("single.in.yaml"), &["--namespace=b"], 1, "its namespace is shop"),
        ("", &[], 1, "standard input is empty"),
        ("# nothing\n", &[], 1, "standard input is empty"),
        ("a: [", &[], 1, "document 1, from line 1 on, is no YAML"),
        ("a: 1\n---\nb: 1\nb: 2\n", &[], 1, "document 2, from line 2 on"),
        ("kind: Service\n", &[], 1, "no Deployment, DaemonSet or StatefulSet"),
        ("apiVersion: apps/v1\nkind: Deployment\n", &[], 1, "spec.template is missing"),
        ("apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {containers: 3}}}\n", &[], 1, "containers is"),
        ("apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {containers: [3]}}}\n", &[], 1, "a container"),
    ] {
        let ended = inject(arguments, manifests);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(code), ""), "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(told), "{arguments:?}: {}", ended.stderr);
    }
}

#[test]
fn a_workload_that_has_an_agent_is_left_as_it_is() {
    let recipe = file("../../../docs/recipes/haproxy.yaml");
    let ended = inject(&["deployment/haproxy"], &recipe);
    assert_eq!((ended.code, ended.stdout), (Some(0), recipe));
    assert!(ended.stderr.contains("deployment/haproxy: its pods have an agent already"), "{}", ended.stderr);
}
