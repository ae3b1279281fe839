//! The limit on the size of stored objects.

use windlass_core::{Doc, doc};

use crate::support::{Api, CONFIG_MAPS, config_map};

const TOO_LARGE: &str = "etcdserver: request is too large";
const MIB: usize = 1 << 20;

/// A status of so many bytes, for a kind that does not limit it.
async fn custom(api: &Api) -> &'static str {
    let any = doc!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition = crate::custom::definition(any);
    api.post(crate::custom::DEFINITIONS, &definition)
        .await
        .expect(201);
    "/apis/example.com/v1/namespaces/default/gadgets"
}

fn gadget(bytes: usize) -> Doc {
    doc!({
        "apiVersion": "example.com/v1", "kind": "Gadget", "metadata": { "name": "a" },
        "spec": { "text": ("x".repeat(bytes)) }
    })
}

#[tokio::test]
async fn objects_above_the_limit_of_etcd_are_refused_however_they_are_written() {
    let api = Api::new().await;
    let path = custom(&api).await;
    let refused = api.post(path, &gadget(2 * MIB)).await.refused(500, "");
    assert_eq!(refused, TOO_LARGE);
    api.post(path, &gadget(MIB)).await.expect(201);
    let one = format!("{path}/a");
    let more = doc!({ "spec": { "more": ("y".repeat(MIB)) } });
    assert_eq!(api.merge(&one, &more).await.refused(500, ""), TOO_LARGE);
    let more = doc!([{ "op": "copy", "from": "/spec/text", "path": "/spec/more" }]);
    let patch = "application/json-patch+json";
    let refused = api.patch(&one, patch, &more.to_string()).await;
    assert_eq!(refused.refused(500, ""), TOO_LARGE);
    assert_eq!(
        api.put(&one, &gadget(2 * MIB)).await.refused(500, ""),
        TOO_LARGE
    );
    let apply = format!("{one}?fieldManager=m&force=true");
    let body = gadget(2 * MIB).to_string();
    let refused = api.patch(&apply, "application/apply-patch+yaml", &body);
    assert_eq!(refused.await.refused(500, ""), TOO_LARGE);
    // Nothing of that was stored, and what is smaller is.
    let found = api.get(&one).await.expect(200);
    assert_eq!(found.str_at("/spec/text").len(), MIB);
    api.put(&one, &gadget(MIB + MIB / 4)).await.expect(200);
    // What is not stored may have any size.
    let dry = format!("{one}?dryRun=All");
    api.put(&dry, &gadget(2 * MIB)).await.expect(200);
}

#[tokio::test]
async fn an_object_that_fits_without_its_managed_fields_loses_them() {
    let api = Api::new().await;
    api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    // Keys of the same length as the rest: with the fields that say who set them they are too much.
    let keys = (0..4000).map(|number| (format!("{number:0>240}"), Doc::from("v")));
    let data: Doc = keys.collect::<windlass_core::Object>().into();
    let one = format!("{CONFIG_MAPS}/a");
    let changed = api.merge(&one, &doc!({ "data": data })).await.expect(200);
    assert!(changed.body.at("/metadata/managedFields").is_null());
    assert_eq!(changed.body.at("/data").as_object().unwrap().len(), 4001);
}
