use proptest::prelude::*;

use super::*;

/// An object of a kind, by `namespace/name`; its UID is what follows `#`, or its name.
fn identity(kind: &str, text: &str) -> Identity {
    let (key, uid) = text.split_once('#').unwrap_or((text, ""));
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    let uid = if uid.is_empty() { name } else { uid };
    Identity {
        kind: kind.into(),
        api_version: "v1".into(),
        namespace: namespace.into(),
        name: name.into(),
        uid: uid.into(),
    }
}

fn reference(owner: &Identity) -> Owner {
    Owner {
        kind: owner.kind.clone(),
        api_version: owner.api_version.clone(),
        name: owner.name.clone(),
        uid: owner.uid.clone(),
        is_blocking: true,
    }
}

fn object(identity: &Identity, owners: &[&Identity]) -> Seen {
    Seen {
        identity: identity.clone(),
        owners: owners.iter().map(|owner| reference(owner)).collect(),
        deletion: Deletion::default(),
    }
}

fn deleting(mut seen: Seen, finalizer: &str) -> Seen {
    seen.deletion = Deletion {
        is_deleting: true,
        has_orphan: finalizer == "orphan",
        has_foreground: finalizer == "foregroundDeletion",
    };
    seen
}

fn see(graph: &mut Graph, seen: &Seen) -> Effects {
    graph.seen(seen, None);
    graph.take_effects()
}

fn check_links(graph: &Graph) {
    check_links_but(graph, &BTreeSet::new());
}

/// Owners list their dependents, and nobody else; virtual nodes are counted. References to those
/// that have ended lead nowhere.
fn check_links_but(graph: &Graph, ended: &BTreeSet<Str>) {
    for (uid, node) in &graph.nodes {
        assert_eq!(*uid, node.identity.uid);
        for owner in node.owners.iter().filter(|it| !ended.contains(&it.uid)) {
            let owner = graph.nodes.get(&owner.uid).expect("every owner has a node");
            assert!(owner.dependents.contains(uid));
        }
        for dependent in &node.dependents {
            let dependent = graph.nodes.get(dependent).expect("dependents have nodes");
            assert!(dependent.owners.iter().any(|owner| owner.uid == *uid));
        }
        let is_useless = node.is_virtual && node.dependents.is_empty();
        assert!(!is_useless, "a virtual node without dependents");
    }
    let virtual_nodes = graph.nodes.values().filter(|node| node.is_virtual).count();
    assert_eq!(graph.sizes(), (graph.nodes.len(), virtual_nodes));
}

#[test]
fn an_owner_that_was_not_seen_is_verified() {
    let mut graph = Graph::default();
    let (owner, child) = (identity("Map", "a/owner"), identity("Pod", "a/child"));
    let effects = see(&mut graph, &object(&child, &[&owner]));
    assert_eq!(effects.check, ["owner"]);
    assert!(graph.nodes["owner"].is_virtual);
    let effects = see(&mut graph, &object(&owner, &[]));
    assert_eq!(effects, Effects::default());
    assert!(!graph.nodes["owner"].is_virtual);
    // What was queued only to be verified is no longer suspect.
    assert!(!graph.clear_suspicion(&"owner".into()));
    check_links(&graph);
}

#[test]
fn the_end_of_an_owner_is_remembered_and_its_dependents_are_checked() {
    let mut graph = Graph::default();
    let (owner, child) = (identity("Map", "a/owner"), identity("Pod", "a/child"));
    see(&mut graph, &object(&owner, &[]));
    see(&mut graph, &object(&child, &[&owner]));
    graph.gone(&owner);
    let effects = graph.take_effects();
    assert_eq!(effects.absent, [owner]);
    assert_eq!(effects.check, ["child"]);
    assert!(graph.clear_suspicion(&"child".into()));
}

#[test]
fn the_end_of_a_dependent_is_told_to_an_owner_that_waits() {
    let mut graph = Graph::default();
    let (owner, child) = (identity("Map", "a/owner"), identity("Pod", "a/child"));
    see(&mut graph, &object(&owner, &[]));
    see(&mut graph, &object(&child, &[&owner]));
    let waiting = deleting(object(&owner, &[]), "foregroundDeletion");
    let effects = see(&mut graph, &waiting);
    assert_eq!(effects.check, ["child", "owner"]);
    assert_eq!(graph.blocking(&"owner".into()).count(), 1);
    graph.gone(&child);
    assert_eq!(graph.take_effects().check, ["owner"]);
    assert_eq!(graph.blocking(&"owner".into()).count(), 0);
}

#[test]
fn a_dependent_that_comes_late_to_an_owner_that_waits_is_checked() {
    let mut graph = Graph::default();
    let (owner, child) = (identity("Map", "a/owner"), identity("Pod", "a/child"));
    see(
        &mut graph,
        &deleting(object(&owner, &[]), "foregroundDeletion"),
    );
    assert_eq!(see(&mut graph, &object(&child, &[&owner])).check, ["child"]);
    let (owner, child) = (identity("Map", "a/other"), identity("Pod", "a/late"));
    let effects = see(&mut graph, &deleting(object(&owner, &[]), "orphan"));
    assert_eq!(effects.orphan, ["other"]);
    let effects = see(&mut graph, &object(&child, &[&owner]));
    assert_eq!(effects.orphan, ["other"]);
}

#[test]
fn a_transition_is_told_once_for_each_time_it_happens() {
    let mut graph = Graph::default();
    let owner = identity("Map", "a/owner");
    let waiting = deleting(object(&owner, &[]), "foregroundDeletion");
    graph.seen(&waiting, None);
    assert_eq!(graph.take_effects().check, ["owner"]);
    graph.seen(&waiting, Some(waiting.deletion));
    assert_eq!(graph.take_effects(), Effects::default());
    let without = deleting(object(&owner, &[]), "");
    graph.seen(&without, Some(waiting.deletion));
    graph.seen(&waiting, Some(without.deletion));
    assert_eq!(graph.take_effects().check, ["owner"]);
}

#[test]
fn owners_that_are_let_go_are_checked() {
    let mut graph = Graph::default();
    let (a, b) = (identity("Map", "a/a"), identity("Map", "a/b"));
    let child = identity("Pod", "a/child");
    see(&mut graph, &object(&a, &[]));
    see(&mut graph, &object(&b, &[]));
    see(&mut graph, &object(&child, &[&a, &b]));
    let mut weaker = object(&child, &[&a, &b]);
    weaker.owners[0].is_blocking = false;
    assert_eq!(see(&mut graph, &weaker).check, ["a"]);
    assert_eq!(see(&mut graph, &object(&child, &[])).check, ["b"]);
    assert!(graph.nodes["a"].dependents.is_empty());
    check_links(&graph);
}

#[test]
fn a_good_child_of_an_owner_outside_of_namespaces_is_kept_whoever_comes_first() {
    let (owner, child) = (identity("Node", "owner"), identity("Pod", "a/child"));
    let mut graph = Graph::default();
    see(&mut graph, &object(&child, &[&owner]));
    assert_eq!(graph.nodes["owner"].identity.namespace, "a");
    let effects = see(&mut graph, &object(&owner, &[]));
    assert_eq!(effects, Effects::default());
    assert_eq!(graph.nodes["owner"].identity, owner);
    let mut graph = Graph::default();
    see(&mut graph, &object(&owner, &[]));
    assert_eq!(
        see(&mut graph, &object(&child, &[&owner])),
        Effects::default()
    );
}

#[test]
fn an_owner_in_another_namespace_is_reported_whoever_comes_first() {
    let (owner, child) = (identity("Map", "b/owner"), identity("Pod", "a/child"));
    let reported = vec![(child.clone(), reference(&owner))];
    let mut graph = Graph::default();
    see(&mut graph, &object(&child, &[&owner]));
    let effects = see(&mut graph, &object(&owner, &[]));
    assert_eq!(
        (effects.misplaced, effects.check),
        (reported.clone(), vec!["child".into()])
    );
    let mut graph = Graph::default();
    see(&mut graph, &object(&owner, &[]));
    let effects = see(&mut graph, &object(&child, &[&owner]));
    assert_eq!(
        (effects.misplaced, effects.check),
        (reported, vec!["child".into()])
    );
}

#[test]
fn a_child_that_names_the_wrong_kind_is_checked_and_the_good_one_is_not() {
    let owner = identity("Map", "a/owner#uid");
    let wrong = identity("Secret", "a/owner#uid");
    let (good, bad) = (identity("Pod", "a/good"), identity("Pod", "a/bad"));
    let (owner_seen, good_seen) = (object(&owner, &[]), object(&good, &[&owner]));
    let bad_seen = object(&bad, &[&wrong]);
    let orders = [
        [&owner_seen, &good_seen, &bad_seen],
        [&owner_seen, &bad_seen, &good_seen],
        [&good_seen, &owner_seen, &bad_seen],
        [&good_seen, &bad_seen, &owner_seen],
        [&bad_seen, &owner_seen, &good_seen],
        [&bad_seen, &good_seen, &owner_seen],
    ];
    for order in orders {
        let mut graph = Graph::default();
        order.iter().for_each(|seen| graph.seen(seen, None));
        graph.take_effects();
        assert_eq!(graph.nodes["uid"].identity, owner);
        assert!(graph.clear_suspicion(&"bad".into()));
        // The wrong identity does not exist; the right one stays.
        graph.absent(&wrong);
        let effects = graph.take_effects();
        assert_eq!(effects.absent, std::slice::from_ref(&wrong));
        assert_eq!(effects.check, ["bad"]);
        assert!(graph.nodes.contains_key("uid"));
        check_links(&graph);
    }
}

#[test]
fn a_virtual_owner_that_dependents_know_differently_is_looked_for_under_each_name() {
    let first = identity("Map", "a/owner#uid");
    let second = identity("Secret", "a/owner#uid");
    let mut graph = Graph::default();
    see(&mut graph, &object(&identity("Pod", "a/x"), &[&first]));
    see(&mut graph, &object(&identity("Pod", "a/y"), &[&second]));
    graph.absent(&first);
    let effects = graph.take_effects();
    assert_eq!(effects.check, ["x"]);
    assert_eq!(effects.check_later, ["uid"]);
    assert_eq!(graph.nodes["uid"].identity, second);
    // The last of its dependents under a name that is absent takes the node along.
    graph.gone(&identity("Pod", "a/x"));
    graph.absent(&second);
    let effects = graph.take_effects();
    assert_eq!(effects.check, ["y"]);
    assert!(!graph.nodes.contains_key("uid"));
}

#[test]
fn other_identities_are_tried_in_their_order() {
    let absent = identity("M", "b/m#uid");
    let dependent = |namespace: &str, owner: &Identity| {
        let identity = identity("Pod", &format!("{namespace}/{}-{}", owner.kind, owner.name));
        Node::real(&object(&identity, &[owner]))
    };
    let version = Identity {
        api_version: "v2".into(),
        ..absent.clone()
    };
    let cases: [(Vec<(&str, Identity)>, Identity); 6] = [
        // Another version, another kind, another name, another namespace.
        (vec![("b", version.clone())], version),
        (
            vec![("b", identity("Z", "b/m#uid"))],
            identity("Z", "b/m#uid"),
        ),
        (
            vec![("b", identity("M", "b/n#uid"))],
            identity("M", "b/n#uid"),
        ),
        (vec![("c", absent.clone())], absent.in_namespace("c")),
        // The next one after the absent, not the first of all.
        (
            vec![
                ("b", identity("A", "b/m#uid")),
                ("b", identity("Z", "b/m#uid")),
            ],
            identity("Z", "b/m#uid"),
        ),
        // After the last one the first.
        (
            vec![
                ("b", identity("B", "b/m#uid")),
                ("b", identity("A", "b/m#uid")),
            ],
            identity("A", "b/m#uid"),
        ),
    ];
    for (others, expected) in cases {
        let nodes: Vec<Node> = others
            .iter()
            .map(|(ns, owner)| dependent(ns, owner))
            .collect();
        assert_eq!(alternate_identity(nodes.iter(), &absent), Some(expected));
    }
    // The kind is known to live outside of namespaces.
    let cluster = absent.in_namespace("");
    let node = dependent("b", &identity("M", "b/n#uid"));
    let expected = identity("M", "n#uid");
    assert_eq!(
        alternate_identity([&node].into_iter(), &cluster),
        Some(expected)
    );
    // Who agrees has nothing else to offer.
    let node = dependent("b", &absent);
    assert_eq!(alternate_identity([&node].into_iter(), &absent), None);
}

#[test]
fn a_kind_that_is_not_watched_any_more_is_forgotten_but_for_what_depends_on_it() {
    let (used, unused) = (identity("Thing", "a/used"), identity("Thing", "a/unused"));
    let child = identity("Pod", "a/child");
    let mut graph = Graph::default();
    see(&mut graph, &object(&used, &[]));
    see(&mut graph, &object(&unused, &[&used]));
    see(&mut graph, &object(&child, &[&used]));
    graph.unwatch(&"Thing".into(), &"v1".into());
    let effects = graph.take_effects();
    assert_eq!(effects.check, ["used"]);
    assert!(effects.absent.is_empty());
    assert!(graph.nodes["used"].is_virtual);
    assert!(!graph.nodes.contains_key("unused"));
    check_links(&graph);
}

/// One step of a random history.
#[derive(Clone, Debug)]
enum Step {
    See(usize, Vec<usize>, u8),
    Gone(usize),
    Absent(usize),
    Unwatch(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let owners = proptest::collection::vec(0..8usize, 0..3);
    prop_oneof![
        6 => (0..8usize, owners, 0..3u8).prop_map(|(at, owners, way)| Step::See(at, owners, way)),
        2 => (0..8usize).prop_map(Step::Gone),
        2 => (0..8usize).prop_map(Step::Absent),
        1 => (0..3usize).prop_map(Step::Unwatch),
    ]
}

/// Eight objects: three kinds, two namespaces and none, and two that share a UID.
fn cast() -> Vec<Identity> {
    ["a/0", "a/1", "b/2", "3", "a/4", "b/5", "6", "b/7#0"]
        .iter()
        .enumerate()
        .map(|(at, text)| identity(["Map", "Pod", "Node"][at % 3], text))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn links_agree_after_any_history(steps in proptest::collection::vec(step(), 1..40)) {
        let cast = cast();
        let mut graph = Graph::default();
        let mut ended = BTreeSet::new();
        for step in steps {
            match step {
                // A UID never comes back.
                Step::See(at, ..) if ended.contains(&cast[at].uid) => {}
                Step::See(at, owners, way) => {
                    let owners: Vec<&Identity> = owners.iter().map(|&it| &cast[it]).collect();
                    let seen = object(&cast[at], &owners);
                    let seen = match way {
                        0 => seen,
                        1 => deleting(seen, "orphan"),
                        _ => deleting(seen, "foregroundDeletion"),
                    };
                    graph.seen(&seen, None);
                }
                Step::Gone(at) => {
                    graph.gone(&cast[at]);
                    ended.insert(cast[at].uid.clone());
                }
                Step::Absent(at) => {
                    graph.absent(&cast[at]);
                    let is_over = !graph.nodes.contains_key(&cast[at].uid);
                    ended.extend(is_over.then(|| cast[at].uid.clone()));
                }
                Step::Unwatch(at) => {
                    graph.unwatch(&["Map", "Pod", "Node"][at].into(), &"v1".into());
                }
            }
            check_links_but(&graph, &ended);
            graph.take_effects();
        }
    }
}
