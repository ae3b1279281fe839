use super::*;

fn flags(arguments: &[&str]) -> Flags {
    Flags::try_parse_from([&["program"], arguments].concat()).unwrap()
}

#[test]
fn defaults_are_those_of_the_kubernetes_components() {
    let flags = flags(&[]);
    let election = &flags.election;
    assert!(election.leader_elect);
    assert_eq!(
        election.leader_elect_lease_duration,
        Duration::from_secs(15)
    );
    assert_eq!(
        election.leader_elect_renew_deadline,
        Duration::from_secs(10)
    );
    assert_eq!(election.leader_elect_retry_period, Duration::from_secs(2));
    assert_eq!((flags.kube_api_qps, flags.kube_api_burst), (20.0, 30));
    assert_eq!(flags.kube_api_content_type, Encoding::Protobuf);
    assert_eq!(flags.min_resync_period, Duration::from_secs(12 * 3600));
    let loopback = "127.0.0.1:8080".parse().unwrap();
    assert_eq!(flags.metrics_bind_address.0, Some(loopback));
    assert_eq!(
        flags.authorization_always_allow_paths,
        ["/healthz", "/readyz", "/livez"]
    );
    assert_eq!(flags.health_probe_bind_address.0, None);
}

#[test]
fn flags_are_written_as_upstream_writes_them() {
    let flags = flags(&[
        "--leader-elect=false",
        "--leader-elect-lease-duration=1m30s",
        "--health-probe-bind-address=127.0.0.1:8081",
        "--metrics-bind-address=0",
        "--controllers=*,-garbage",
        "--kube-api-content-type=application/json",
        "-v=4",
        "--logging-format=json",
    ]);
    assert!(!flags.election.leader_elect);
    assert_eq!(
        flags.election.leader_elect_lease_duration,
        Duration::from_secs(90)
    );
    assert_eq!(
        flags.health_probe_bind_address.0.unwrap().to_string(),
        "127.0.0.1:8081"
    );
    assert_eq!(flags.metrics_bind_address.0, None);
    assert_eq!(flags.kube_api_content_type, Encoding::Json);
    assert_eq!(
        (flags.verbosity, flags.logging_format),
        (4, Some(LoggingFormat::Json))
    );
    assert!(flags.is_enabled("deployment") && !flags.is_enabled("garbage"));
    assert!(self::flags(&["--leader-elect"]).election.leader_elect);
}

#[test]
fn controllers_are_chosen_by_name() {
    let only = flags(&["--controllers=a,b"]);
    assert!(only.is_enabled("a") && only.is_enabled("b") && !only.is_enabled("c"));
    let without = flags(&["--controllers=-a"]);
    assert!(!without.is_enabled("a") && !without.is_enabled("b"));
}

#[test]
fn durations_are_read_as_go_writes_them() {
    let parsed = |text| parse_duration(text).map(|it| it.as_millis());
    assert_eq!(parsed("12h0m0s"), Ok(12 * 3_600_000));
    assert_eq!(parsed("1.5h"), Ok(5_400_000));
    assert_eq!(parsed("500ms"), Ok(500));
    assert_eq!(parsed("0"), Ok(0));
    for bad in ["", "5", "s", "-5s", "1d", "1h5", "1e400s"] {
        assert!(parse_duration(bad).is_err(), "{bad}");
    }
}
