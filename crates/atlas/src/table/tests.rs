use super::*;

fn kind(group: &'static str, version: &'static str, kind: &'static str) -> &'static Type {
    Atlas::kind(&Gvk::constant(group, version, kind)).expect("a built-in kind")
}

#[test]
fn kinds_are_found_by_group_version_and_kind() {
    assert_eq!(kind("", "v1", "Pod").package(), "core/v1");
    assert_eq!(kind("apps", "v1", "Deployment").name(), "Deployment");
    assert_eq!(
        kind("autoscaling", "v2", "HorizontalPodAutoscaler").package(),
        "autoscaling/v2"
    );
    assert_eq!(kind("", "v1", "Event").package(), "core/v1");
    assert_eq!(kind("events.k8s.io", "v1", "Event").package(), "events/v1");
    assert!(Atlas::kind(&Gvk::constant("apps", "v1beta1", "Deployment")).is_none());
    assert!(Atlas::kind(&Gvk::constant("", "v1", "PodSpec")).is_none());
    assert!(Atlas::kind(&Gvk::constant("example.com", "v1", "Foo")).is_none());
}

#[test]
fn options_are_kinds_of_every_group_and_status_of_the_core_group() {
    assert_eq!(kind("apps", "v1", "DeleteOptions").package(), "meta/v1");
    assert_eq!(kind("", "v1", "DeleteOptions").package(), "meta/v1");
    assert_eq!(
        kind("", "v1", "Status").gvk(),
        Some(Gvk::constant("", "v1", "Status"))
    );
    assert!(Atlas::kind(&Gvk::constant("apps", "v1", "Status")).is_none());
}

#[test]
fn fields_carry_their_facts() {
    let spec = Atlas::named("core/v1", "PodSpec").expect("the type of pod specs");
    let containers = spec.field("containers").expect("a field");
    assert_eq!(containers.number(), 2);
    assert!(containers.is_required());
    assert_eq!(containers.list_type(), Some(ListType::Map));
    assert_eq!(containers.list_keys(), ["name"]);
    assert_eq!(containers.merge_key(), Some("name"));
    assert!(containers.strategy().merge && !containers.strategy().retain_keys);

    let container = containers.shape().inner().and_then(Shape::message);
    let ports = container.and_then(|it| it.field("ports")).expect("a field");
    assert_eq!(ports.list_keys(), ["containerPort", "protocol"]);
    assert_eq!(ports.merge_key(), Some("containerPort"));
    let port = ports
        .shape()
        .inner()
        .and_then(Shape::message)
        .expect("a type");
    let protocol = port.field("protocol").expect("a field");
    assert_eq!(protocol.default(), Some(Doc::from("TCP")));
    let Shape::Enum(values) = protocol.shape() else {
        panic!("protocols are an enum, not {:?}", protocol.shape());
    };
    assert_eq!(values.values(), ["SCTP", "TCP", "UDP"]);
}

#[test]
fn fields_of_inlined_types_belong_to_the_outer_one() {
    let volume = Atlas::named("core/v1", "Volume").expect("a type");
    assert_eq!(volume.field("emptyDir").map(Field::number), Some(2));
    let pod = kind("", "v1", "Pod");
    assert_eq!(
        pod.field("apiVersion").map(Field::shape),
        Some(&Shape::String)
    );
    let names: Vec<_> = pod.fields().iter().map(|field| field.name()).collect();
    assert_eq!(names, ["metadata", "spec", "status", "apiVersion", "kind"]);
    assert!(pod.field("spec.containers").is_none());
}

#[test]
fn a_field_may_be_granular_though_its_type_is_atomic() {
    let reference = Atlas::named("core/v1", "ObjectReference").expect("a type");
    assert!(reference.is_atomic());
    let volume = Atlas::named("core/v1", "PersistentVolumeSpec").expect("a type");
    assert!(!volume.field("claimRef").expect("a field").is_atomic());
    let subject = Atlas::named("core/v1", "Binding").expect("a type");
    assert!(subject.field("target").expect("a field").is_atomic());
}

#[test]
fn the_whole_table_reads_and_every_default_is_json() {
    let atlas = parse::parse(include_str!("../facts.txt"));
    let fields: usize = atlas.types.iter().map(|found| found.fields.len()).sum();
    assert!(atlas.types.len() > 500 && fields > 2000);
    for field in atlas.types.iter().flat_map(|found| &found.fields) {
        assert!(field.default.is_none() || field.default().is_some());
        let is_map = field.list_type == Some(ListType::Map);
        assert_eq!(is_map, !field.list_keys.is_empty(), "{}", field.name);
    }
}

#[test]
fn protobuf_numbers_of_one_type_are_distinct() {
    for found in Atlas::types() {
        let own = found.fields.iter().map(|field| field.number);
        let inlined = found.inlined.iter().map(|inlined| inlined.number);
        let mut numbers: Vec<_> = own.chain(inlined).filter(|number| *number > 0).collect();
        numbers.sort_unstable();
        let before = numbers.len();
        numbers.dedup();
        assert_eq!(numbers.len(), before, "{}.{}", found.package, found.name);
    }
}
