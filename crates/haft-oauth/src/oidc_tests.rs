//! Metadata, requests and answers.

use serde_json::json;

use super::*;

fn metadata(change: impl FnOnce(&mut Value)) -> Result<ProviderMetadata, OidcError> {
    let mut document = json!({
        "issuer": "https://login.test/a", "authorization_endpoint": "https://login.test/auth?x=1",
        "token_endpoint": "https://login.test/token", "jwks_uri": "https://keys.test/jwks",
    });
    change(&mut document);
    ProviderMetadata::parse(document.to_string().as_bytes(), "https://login.test/a")
}

#[test]
fn metadata_is_that_of_the_issuer() {
    let found = metadata(|_| {}).unwrap();
    assert!(!found.names_itself && !found.secret_in_form && found.end_session_endpoint.is_none());
    assert!(metadata(|document| document["token_endpoint_auth_methods_supported"] = json!(["client_secret_post"])).unwrap().secret_in_form);
    let check = |name: &str, value: Value, expected: OidcError| {
        assert_eq!(metadata(|document| document[name] = value).unwrap_err(), expected);
    };
    check(
        "issuer",
        json!("https://login.test/a/"),
        OidcError::OtherIssuer("https://login.test/a/".to_owned()),
    );
    let insecure = OidcError::Url("token_endpoint", "`https` is required, because the issuer uses it");
    check("token_endpoint", json!("http://login.test/token"), insecure);
    check("jwks_uri", json!("file:///etc/passwd"), OidcError::Url("jwks_uri", "not a URL"));
    check("jwks_uri", json!("/jwks"), OidcError::Url("jwks_uri", "not a URL"));
    let credentials = OidcError::Url("jwks_uri", "it contains a user name or password");
    check("jwks_uri", json!("https://a:b@login.test/"), credentials);
    let expected = OidcError::Url("end_session_endpoint", "expected `https`");
    check("end_session_endpoint", json!("ftp://login.test/"), expected);
    assert!(matches!(ProviderMetadata::parse(b"<html>", "x"), Err(OidcError::Document(..))));
    let url = discovery_url(&Url::parse("https://login.test/a/").unwrap());
    assert_eq!(url.as_str(), "https://login.test/a/.well-known/openid-configuration");
}

#[test]
fn a_request_binds_the_answer() {
    let verifier = Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned());
    // The example of RFC 7636, appendix B.
    assert_eq!(code_challenge(&verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    let scopes = ["openid".to_owned(), "email".to_owned()];
    let request = AuthorizationRequest {
        client_id: "haft",
        redirect_uri: "https://haft.test/cb",
        scopes: &scopes,
        state: "s",
        nonce: "n",
        verifier: &verifier,
    };
    let url = request.url(&metadata(|_| {}).unwrap());
    assert_eq!(
        url.as_str(),
        "https://login.test/auth?x=1&response_type=code&client_id=haft&redirect_uri=https%3A%2F%2Fhaft.test%2Fcb\
         &scope=openid+email&state=s&nonce=n&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM\
         &code_challenge_method=S256"
    );
}

#[test]
fn the_secret_is_sent_as_the_issuer_wants_it() {
    let (code, verifier, secret) =
        (Secret::new("c".to_owned()), Secret::new("v".to_owned()), Secret::new("p:w d".to_owned()));
    let exchange = |client_secret| CodeExchange {
        client_id: "ha ft",
        client_secret,
        redirect_uri: "https://haft.test/cb",
        code: &code,
        verifier: &verifier,
    };
    let form =
        "grant_type=authorization_code&code=c&redirect_uri=https%3A%2F%2Fhaft.test%2Fcb&code_verifier=v";
    let basic = metadata(|_| {}).unwrap();
    let request = exchange(Some(&secret)).request(&basic);
    assert_eq!(request.form, form);
    let expected = format!("Basic {}", STANDARD.encode("ha+ft:p%3Aw+d"));
    assert_eq!(request.authorization.unwrap().expose(), expected);
    let post = metadata(|document| {
        document["token_endpoint_auth_methods_supported"] = json!(["client_secret_post"]);
    });
    let request = exchange(Some(&secret)).request(&post.unwrap());
    assert_eq!(request.form, format!("{form}&client_id=ha+ft&client_secret=p%3Aw+d"));
    assert!(request.authorization.is_none());
    assert_eq!(exchange(None).request(&basic).form, format!("{form}&client_id=ha+ft"));
}

#[test]
fn answers_of_other_issuers_are_rejected() {
    let check = |names_itself: bool, callback: Callback, expected: Result<&str, OidcError>| {
        let metadata = metadata(|document| {
            document["authorization_response_iss_parameter_supported"] = json!(names_itself);
        });
        let found = callback.clone().check("https://login.test/a", &metadata.unwrap());
        assert_eq!(found.map(|code| code.expose().to_owned()), expected.map(str::to_owned), "{callback:?}");
    };
    let code = || Some(Secret::new("c".to_owned()));
    let with =
        |iss: Option<&str>, code| Callback { code, iss: iss.map(str::to_owned), ..Callback::default() };
    check(false, with(None, code()), Ok("c"));
    check(true, with(Some("https://login.test/a"), code()), Ok("c"));
    check(true, with(None, code()), Err(OidcError::MixedUp));
    check(false, with(Some("https://evil.test"), code()), Err(OidcError::MixedUp));
    check(false, with(None, None), Err(OidcError::NoCode));
    let error = |iss: Option<&str>| Callback {
        error: Some("access_denied".to_owned()),
        error_description: Some("no".to_owned()),
        ..with(iss, None)
    };
    check(true, error(Some("https://login.test/a")), Err(OidcError::Denied("access_denied: no".to_owned())));
    check(true, error(None), Err(OidcError::MixedUp));
}

#[test]
fn further_claims_are_those_of_the_same_subject() {
    let mut claims = json!({"sub": "ann", "email": "ann@a.test"}).as_object().unwrap().clone();
    merge_userinfo(&mut claims, br#"{"sub": "ann", "email": "other@a.test", "groups": ["a"]}"#).unwrap();
    assert_eq!(Value::Object(claims.clone()), json!({"sub": "ann", "email": "ann@a.test", "groups": ["a"]}));
    assert_eq!(merge_userinfo(&mut claims, br#"{"sub": "bob"}"#), Err(OidcError::OtherSubject));
    assert!(merge_userinfo(&mut claims, b"eyJhbGciOi").is_err());
    assert!(matches!(TokenAnswer::parse(b"{\"access_token\": \"a\"}", 0), Err(OidcError::NoIdToken)));
    assert_eq!(
        rejection(b"{\"error\": \"invalid_grant\", \"error_description\": \"x\"}").as_deref(),
        Some("invalid_grant")
    );
}
