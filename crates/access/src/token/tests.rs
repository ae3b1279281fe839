//! Keys of several forms sign and verify.

use windlass_core::Env;

use super::keys::{PublicKey, SigningKey};
use super::{Claims, Signer, TokenOptions};

const P256: &str = "-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIFRH8ovniHXOQIVL42znfTRPX596GhU+TDyxF/qUks2eoAoGCCqGSM49
AwEHoUQDQgAEhLZcE8KhdgttWARK3euuIRkQ+DUMV/e9i06sLDka6SYlzVh0zQc5
ouhhJ6fO5XAcdvjFEdfDEeZEJTt4vC8Wuw==
-----END EC PRIVATE KEY-----
";
const RSA: &str = "-----BEGIN RSA PRIVATE KEY-----
MIIEpQIBAAKCAQEApwTJ876el6zdyFA5Ocgk1TMQSWuzFhp/vBrsDDy31p6ERY4V
5eEWToGnuWM9FOj2V1VZc+/EUY2bO7Tm1Rd48BTs82+U9MhW0U7xchhTsm0Lp01s
xDcV+3DokSmv7YZbpSlsC4h7SA4M4g2qQ3E5l9suQ56h0PQ68TR3/Sb7t3MDsxGy
ELdfoOY+EH/wxkIV3wl5BVqNzqqgqfBr0oxzNZsvCnURxWdAJeUuJp9E8txuVC+S
s+2G2NnsMCoYV3xASBg0R1Y5rrSLUJicBpbLAnbuNwyIUiLZX1P9VpisKCe5QpzC
iojaav0Cylch8djIE+r+x2KDBnmkP1tziiqE5QIDAQABAoIBABh71fwWl0qeU4PM
KNts2ONtISfWMzJcD5ocazqPAxch9Tt6DQE+OiYnkRYW82sXjJc4YozhmuqmotlB
l24pCvhM5QB5vMEWhk2YMEJcyRY4sJLlwXpRJfaOcnVnQkxEXDZtyFI3f3UMZDyW
Kr3IwRvfDFzqygdm6iYWXjmc550YcRWawFosPJe+7c8fNkRTca4WsKbzX5yzNGHG
7Y5nqAVEqCBeAwK8vcRZk2hdjjmBlJWtSUFxMJuWXIQo8pcnF/iP0B9JTXnirnE/
P7hwMELX32tBVeRGodr8gqGT+PrXT7ihmdgCXdCBJnSgxp1ZfIrDzBtuP5+K7b9C
Jxncp9kCgYEA4jFAlStptPuEdhLZfvvpVynHeNxVsCKVhtHLNhaweHiJv87WEHg/
WehfJVoODKER6lltBu7MVky67CUFJWhMSupXdHic4+dWH6J9Z44r6x75UJwx804t
l95nDghwjWm482ABxHmaq5kL7gY8G+Fwy3z3ldpbrgtUlwXK14cHoskCgYEAvQdG
Fe+zJ/wz1Z6CFOLgNz/c/0U+YXvpDVIohL0WBjY+xQ3aHEEf+M9/XanJsDNdrOG8
UbN9t+rv3cg8XwsYPV/WTSh6amQ7mtb4ZhaB1qy8Mdl60TGW79r+klizBugnR1Xq
mzfEz+pKezijV0eHTlCHPdvnSaUpX76FPeO9Yz0CgYEA2CYexC2XNza/LyH2K43J
Pt0S3CEZ1VZHM22Z1lc6TfVKFTwvfc+bImyXN5dmI5VsDFlmgaCDLdjnKzB5SXTw
qwpjhk6YBoWT3Gknk2Td/TI9J1YLuai0kxMZweQ4wjoMXq4ZIkrejiqTpuLYYABA
DISgB9iBkcEMFcGYQ/uqRVkCgYEAi7fppOM0wDRZN+debQO5CP1qY0CSOEn3W8JD
csG0msjToqF3evTkJetxUBDkpBmDfvqnUJhkL2I3A+4yOWog85R3+TYXLbaCnBOT
LRorxDqPLCV88009LHLpQdDQGyXTipXFwA77qVaa0PNvQF79cvRw0ldNYJD0wPE4
2SMRZF0CgYEAguztMGVynzVk0DEQH4kt8eDRoW6x6y9gaFrVJKt9NMrkpIegLaFN
xcwH/bdrMx4Fo50N4Kg1kplPtJ/yYY502Fdw7q2hfZ7FuryT5dQeDu0iS+eUJUqa
fGW5j729UtZpirx6cxO8pS5YGNnRdi3CFW+UYhrcZx6iQcpYARXnhQY=
-----END RSA PRIVATE KEY-----
";
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----
MIIBcTCCARegAwIBAgIUccXS65JANC91b1/2HadnAsrf5RkwCgYIKoZIzj0EAwIw
DTELMAkGA1UEAwwCc2EwIBcNMjYxMTE3MDIxOTQ2WhgPMjEyNjEwMjQwMjE5NDZa
MA0xCzAJBgNVBAMMAnNhMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEhLZcE8Kh
dgttWARK3euuIRkQ+DUMV/e9i06sLDka6SYlzVh0zQc5ouhhJ6fO5XAcdvjFEdfD
EeZEJTt4vC8Wu6NTMFEwHQYDVR0OBBYEFHQdNqnBoQe7vB4/ENDvmgOl0VdJMB8G
A1UdIwQYMBaAFHQdNqnBoQe7vB4/ENDvmgOl0VdJMA8GA1UdEwEB/wQFMAMBAf8w
CgYIKoZIzj0EAwIDSAAwRQIhAICptNtpC227yaOKxhwN/gw69+f/QwICqBoDtRI9
xNM7AiAoDQc8bBpHk6dvtXoRHB2cLZkBXmsZj9+4QM0PjX06hA==
-----END CERTIFICATE-----
";

fn claims() -> Claims {
    Claims {
        namespace: "default".to_owned(),
        name: "builder".to_owned(),
        uid: "u".to_owned(),
        audiences: vec!["https://127.0.0.1:6443/".to_owned()],
        seconds: 600,
        bound_to: None,
    }
}

#[test]
fn tokens_are_issued_by_the_first_issuer_and_verified_by_any_key() {
    let env = Env::seeded(1);
    let options = TokenOptions {
        issuers: vec!["https://127.0.0.1:6443/".to_owned(), "old".to_owned()],
        ..TokenOptions::default()
    };
    for (key, algorithm) in [(P256, "ES256"), (RSA, "RS256")] {
        assert_eq!(SigningKey::from_pem(key).unwrap().algorithm(), algorithm);
        let signer = Signer::from_pem(key, &env).unwrap().with(&options).unwrap();
        assert_eq!(signer.audiences(), options.issuers);
        let (token, _) = signer.sign(&claims()).unwrap();
        let payload = signer.payload(&token).unwrap();
        assert_eq!(payload.str_at("/iss"), "https://127.0.0.1:6443/");

        let other = Signer::in_memory(&env).unwrap();
        assert!(other.payload(&token).is_none(), "another key has signed it");
        let keys = vec![P256.to_owned(), RSA.to_owned()];
        let both = TokenOptions {
            keys,
            ..TokenOptions::default()
        };
        assert!(other.with(&both).unwrap().payload(&token).is_some());
    }
}

#[test]
fn a_certificate_is_a_key_of_service_accounts() {
    let keys = PublicKey::all_from_pem(CERTIFICATE).unwrap();
    assert!(keys == [SigningKey::from_pem(P256).unwrap().public()]);
}

#[test]
fn a_text_without_keys_is_refused() {
    assert!(PublicKey::all_from_pem("no key").is_err());
    assert!(SigningKey::from_pem(CERTIFICATE).is_err());
}
