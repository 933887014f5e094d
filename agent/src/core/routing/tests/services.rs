//! W6, W8, what E6 asks for, and policies that change (C10).

use super::{
    super::State,
    scene::{FAR, LEAVING, NEAR, POD, READY, Scene, endpoint, local_service, relevant, service, slice},
};
use crate::core::{
    cluster::{ResourceVersion, Service, ServiceName, ServiceProxy, Slice, TrafficPolicy},
    listener::Family,
};

fn names(scene: &Scene) -> Vec<String> {
    let named = scene.routing.not_observed();
    named.iter().map(|entry| format!("{}/{}", entry.what, entry.name.as_deref().unwrap_or_default())).collect()
}

#[test]
fn w6_policies_that_cannot_be_read_are_named_and_the_rest_is_judged() {
    let mut scene = Scene::blank();
    scene.relist(&[("a", &[(POD, LEAVING), (FAR, READY)])]);
    assert!(!scene.routing.known(), "neither policies nor that they cannot be read");
    scene.routing.services_unreadable("services is forbidden".into());
    assert!(scene.routing.known());
    assert!(scene.is_withdrawn());
    assert_eq!(names(&scene), ["policy/web"]);
    let at = scene.tick();
    let changes = scene.routing.services_listed(vec![local_service()], at);
    assert!(relevant(&changes), "now it is known that this node's endpoints count");
    assert_eq!(scene.state(), Some(State::Routed));
    assert!(names(&scene).is_empty());
    assert_eq!(scene.routing.last_policy_change(Family::V4), None, "a first list is no change that was seen");
}

#[test]
fn w6_policies_known_before_they_became_unreadable_still_hold() {
    let mut scene = Scene::listed_with(local_service(), &[("a", &[(POD, LEAVING), (FAR, READY)])]);
    scene.routing.services_unreadable("403".into());
    assert_eq!(scene.state(), Some(State::Routed));
    assert!(scene.write("a", &[(POD, LEAVING), (FAR, READY), (NEAR, READY)]));
    assert!(scene.is_withdrawn_now());
    assert_eq!(names(&scene), ["policy/web"]);
}

#[test]
fn w8_a_headless_or_foreign_service_that_lists_the_pod_is_named() {
    for (proxy, name) in [(ServiceProxy::Headless, "headless/web"), (ServiceProxy::Foreign, "service-proxy-name/web")] {
        let mut scene = Scene::listed(&[]);
        let of = |version, endpoints| Slice { proxy, ..slice("h", version, endpoints) };
        assert!(!scene.deliver(&of(90, vec![endpoint(FAR, READY)])));
        assert!(names(&scene).is_empty(), "it does not list the pod");
        assert!(!scene.deliver(&of(91, vec![endpoint(POD, READY)])), "kube-proxy's rules have nothing of it");
        assert_eq!(names(&scene), [name]);
        assert!(scene.routing.known());
        assert!(scene.routing.families().is_empty());
        assert_eq!(scene.state(), None);
        scene.remove("h");
        assert_eq!(names(&scene), [name], "who found the pod there may remember it");
    }
}

#[test]
fn w8_a_service_that_says_so_itself_is_named_too() {
    let headless = Service { proxy: ServiceProxy::Headless, ..service("web") };
    assert_eq!(names(&Scene::listed_with(headless, &[("a", &[(POD, READY)])])), ["headless/web"]);
    let foreign = Service { proxy: ServiceProxy::Foreign, ..service("web") };
    assert_eq!(names(&Scene::listed_with(foreign, &[("a", &[(POD, READY)])])), ["service-proxy-name/web"]);
}

#[test]
fn c10_a_change_of_policies_or_ports_is_relevant() {
    let edits: [fn(&mut Service); 5] = [
        |service| service.external = TrafficPolicy::Local,
        |service| service.internal = TrafficPolicy::Local,
        |service| service.ports = "http 81/TCP http".into(),
        |service| service.proxy = ServiceProxy::Foreign,
        |service| service.proxy = ServiceProxy::Headless,
    ];
    for edit in edits {
        let mut scene = Scene::listed(&[("a", &[(POD, LEAVING), (FAR, READY)])]);
        let mut changed = service("web");
        edit(&mut changed);
        let at = scene.tick();
        assert!(relevant(&scene.routing.service_written(changed.clone(), at)));
        assert_eq!(scene.routing.last_policy_change(Family::V4), Some(at));
        assert_eq!(scene.routing.last_relevant_change(Family::V4), Some(at));
        assert_eq!(
            scene.state() == Some(State::Routed),
            [changed.external, changed.internal].contains(&TrafficPolicy::Local)
        );
    }
}

#[test]
fn c10_other_changes_of_a_service_are_not() {
    let mut scene = Scene::listed(&[("a", &[(POD, LEAVING), (FAR, READY)])]);
    let before = scene.state();
    let port = Some(31_000);
    let touched = Service { version: ResourceVersion("2".into()), health_check_node_port: port, ..service("web") };
    let at = scene.tick();
    assert!(!relevant(&scene.routing.service_written(touched, at)));
    let policy = scene.routing.service_written(Service { external: TrafficPolicy::Local, ..service("other") }, at);
    assert!(!relevant(&policy), "it has not listed the pod");
    assert_eq!((scene.state(), scene.routing.last_policy_change(Family::V4)), (before, None));
}

#[test]
fn c10_a_service_deleted_or_listed_in_another_version_is_a_change() {
    let mut scene = Scene::listed_with(local_service(), &[("a", &[(POD, LEAVING), (FAR, READY)])]);
    let at = scene.tick();
    assert!(!relevant(&scene.routing.services_listed(vec![local_service()], at)), "the same version");
    let at = scene.tick();
    let other_version = Service { version: ResourceVersion("2".into()), ..local_service() };
    assert!(relevant(&scene.routing.services_listed(vec![other_version], at)));
    assert_eq!(scene.routing.last_policy_change(Family::V4), Some(at));
    let at = scene.tick();
    assert!(relevant(&scene.routing.service_removed(ServiceName("web".into()), at)));
    assert!(scene.is_withdrawn_now());
    assert!(!relevant(&scene.routing.service_removed(ServiceName("web".into()), at)));
}

#[test]
fn e6_services_with_a_health_check_node_port_are_told() {
    let mut scene = Scene::listed_with(local_service(), &[("a", &[(POD, READY)])]);
    let at = scene.tick();
    scene.routing.service_written(Service { health_check_node_port: Some(32_000), ..service("other") }, at);
    let web = ServiceName("web".into());
    assert_eq!(scene.routing.health_check_node_ports().into_iter().collect::<Vec<_>>(), [(&web, 31_000)]);
}

/// Then a fence rests on `watchLag` too.
#[test]
fn c10_a_list_that_shows_another_version_is_news_whatever_came_between() {
    let of_version = |version: &str| Service { version: ResourceVersion(version.into()), ..service("web") };
    let mut scene = Scene::listed(&[("a", &[(POD, READY)])]);
    assert_eq!(scene.routing.last_policy_change(Family::V4), None, "the first list shows no change");
    scene.routing.services_unreadable("for a time".to_owned());
    let at = scene.tick();
    scene.routing.services_listed(vec![of_version("2")], at);
    assert_eq!(scene.routing.last_policy_change(Family::V4), Some(at));

    let at = scene.tick();
    scene.routing.services_listed(vec![], at);
    let at = scene.tick();
    scene.routing.services_listed(vec![of_version("3")], at);
    assert_eq!(scene.routing.last_policy_change(Family::V4), Some(at), "after an empty list too");

    scene.routing.services_unreadable("for a time".to_owned());
    let at = scene.tick();
    scene.routing.service_written(local_service(), at);
    assert_eq!(scene.routing.last_policy_change(Family::V4), Some(at), "and by the watch alone");
}

#[test]
fn c10_a_change_of_a_policy_before_the_first_list_of_slices_is_news_once_they_are_listed() {
    for (written, expected) in [("web", true), ("other", false)] {
        let mut scene = Scene::blank();
        let at = scene.tick();
        scene.routing.services_listed(vec![local_service(), Service { ports: String::new(), ..service("other") }], at);
        scene.routing.service_written(service(written), at);
        assert_eq!(scene.routing.last_policy_change(Family::V4), None);
        scene.relist(&[("a", &[(POD, LEAVING), (FAR, READY)])]);
        assert_eq!(scene.routing.last_policy_change(Family::V4), expected.then_some(scene.now), "{written}");
    }
}
