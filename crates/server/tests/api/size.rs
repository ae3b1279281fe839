//! The limit on the size of stored objects.

use windlass_core::{Doc, doc};

use crate::support::{Api, CONFIG_MAPS, config_map};

const TOO_LARGE: &str = "etcdserver: request is too large";
const MIB: usize = 1 << 20;

/// The path of a custom kind whose objects may hold anything.
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
    let found = api.get(&one).await.expect(200);
    let revised = |bytes| {
        let revision = found.str_at("/metadata/resourceVersion");
        let revised = gadget(bytes).with("/metadata/resourceVersion", revision);
        revised.unwrap()
    };
    let refused = api.put(&one, &revised(2 * MIB)).await.refused(500, "");
    assert_eq!(refused, TOO_LARGE);
    let apply = format!("{one}?fieldManager=m&force=true");
    let body = gadget(2 * MIB).to_string();
    let refused = api.patch(&apply, "application/apply-patch+yaml", &body);
    assert_eq!(refused.await.refused(500, ""), TOO_LARGE);
    // Nothing of that was stored. What is not to be stored may have any size.
    let now = api.get(&one).await.expect(200);
    assert_eq!(now.revision(), found.revision());
    let dry = format!("{one}?dryRun=All");
    api.put(&dry, &revised(2 * MIB)).await.expect(200);
    api.put(&one, &revised(MIB + MIB / 4)).await.expect(200);
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
