use std::collections::BTreeSet;

use serde_json::Value;

use super::*;

fn pod(corpus: &Corpus, index: usize) -> Value {
    let mut text = Vec::new();
    corpus.write_pod(index, &mut text);
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn mean_size_is_that_of_a_real_pod() {
    let corpus = Corpus::new(2_000);
    let mut text = Vec::new();
    (0..corpus.len()).for_each(|index| corpus.write_pod(index, &mut text));
    let mean = text.len() / corpus.len();
    assert!((10_500..=11_700).contains(&mean), "{mean} bytes");
}

#[test]
fn every_pod_is_json_without_holes() {
    let corpus = Corpus::new(250);
    for index in 0..corpus.len() {
        let mut text = Vec::new();
        corpus.write_pod(index, &mut text);
        assert!(!text.contains(&b'<') && !text.contains(&b'\n'));
        corpus.write_create(index, &mut text);
        corpus.write_status(index, &mut text);
        let parts = serde_json::Deserializer::from_slice(&text).into_iter::<Value>();
        assert_eq!(parts.map(Result::unwrap).count(), 3);
    }
}

#[test]
fn same_number_gives_the_same_pod() {
    assert_eq!(pod(&Corpus::new(300), 250), pod(&Corpus::new(9_000), 250));
}

#[test]
fn identities_are_unique() {
    let corpus = Corpus::with_own_tokens(20_000);
    for pointer in [
        "/metadata/uid",
        "/spec/volumes/2/name",
        "/metadata/creationTimestamp",
    ] {
        let distinct: BTreeSet<String> = (0..corpus.len())
            .step_by(7)
            .map(|index| pod(&corpus, index).pointer(pointer).unwrap().to_string())
            .collect();
        assert_eq!(distinct.len(), corpus.len().div_ceil(7), "{pointer}");
    }
    let mut keys = BTreeSet::new();
    for index in 0..corpus.len() {
        let mut key = Vec::new();
        corpus.write_key(index, &mut key);
        assert!(keys.insert(key), "pod {index}");
    }
}

#[test]
fn pods_of_one_replicaset_share_all_but_their_place() {
    let corpus = Corpus::new(200);
    let spec = |index| {
        let mut spec = pod(&corpus, index)["spec"].take();
        spec["nodeName"] = Value::Null;
        spec
    };
    assert_eq!(spec(0), spec(99));
    assert_ne!(spec(0), spec(100));
}

#[test]
fn every_other_pod_has_a_status() {
    let corpus = Corpus::new(4);
    let entries = |index| {
        pod(&corpus, index)["metadata"]["managedFields"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(
        pod(&corpus, 0)["status"]["conditions"]
            .as_array()
            .unwrap()
            .len(),
        5
    );
    assert_eq!(pod(&corpus, 1)["status"]["phase"], "Pending");
    assert_eq!((entries(0), entries(1)), (2, 1));
}

#[test]
fn create_body_leaves_out_what_the_server_fills_in() {
    let corpus = Corpus::new(1);
    let mut text = Vec::new();
    corpus.write_create(0, &mut text);
    let body: Value = serde_json::from_slice(&text).unwrap();
    for field in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "managedFields",
    ] {
        assert_eq!(body["metadata"].get(field), None, "{field}");
    }
    assert_eq!(body.get("status"), None);
    assert_eq!(body["spec"], pod(&corpus, 0)["spec"]);
}

#[test]
fn list_holds_every_pod_without_its_kind() {
    let corpus = Corpus::new(3);
    let mut text = Vec::new();
    corpus.write_list(&mut text);
    let list: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 3);
    assert_eq!(list["items"][1].get("kind"), None);
    assert_eq!(list["items"][1]["spec"], pod(&corpus, 1)["spec"]);
}
