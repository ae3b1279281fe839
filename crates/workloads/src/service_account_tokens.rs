//! Tokens of service accounts in Secrets: a Secret of the type `kubernetes.io/service-account-token`
//! gets a token of the account that it names, and goes with that account.

use std::{fmt, sync::Arc};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use windlass_cache::{Obj, SharedInformer};
use windlass_client::{DeleteOptions, Error, WriteOptions};
use windlass_core::{Doc, Key, Selector, doc};
use windlass_runtime::{
    Action, Change, Context, Controller, Manager, ResourceKind, Result, Trigger,
};

use crate::owned::core_kind;

/// The name of the controller, as kube-controller-manager has it.
pub const NAME: &str = "serviceaccount-token-controller";

/// The type of Secrets that hold tokens.
const TOKEN_TYPE: &str = "kubernetes.io/service-account-token";
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

/// The issuer of tokens that are kept in Secrets.
const ISSUER: &str = "kubernetes/serviceaccount";

/// Retries of a Secret, as upstream; after them the next change brings it back.
const RETRIES: u32 = 10;

/// Signs tokens.
pub trait TokenSource: Send + Sync + 'static {
    /// A signed token with these claims; `None` if it could not be signed.
    fn sign(&self, claims: &Doc) -> Option<String>;
}

/// The numbers of the controller, and who signs.
#[derive(Clone)]
pub struct Options {
    /// Secrets that are worked on at the same time.
    pub workers: usize,
    /// Signs tokens. Without it the controller does not run.
    pub source: Option<Arc<dyn TokenSource>>,
    /// The certificate authority of the API server, as PEM; empty for none.
    pub root_ca: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            workers: 5,
            source: None,
            root_ca: String::new(),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_signing = self.source.is_some();
        f.debug_struct("Options")
            .field("workers", &self.workers)
            .field("is_signing", &is_signing)
            .finish_non_exhaustive()
    }
}

/// Adds the controller to a manager, if somebody can sign.
pub fn add_to(manager: &Manager, options: &Options) {
    let Some(source) = options.source.clone() else {
        tracing::warn!(
            controller = NAME,
            "not started: there is no key to sign with"
        );
        return;
    };
    let informer = |kind: ResourceKind| manager.factory().dynamic(kind.gvr().clone());
    let engine = Arc::new(Engine {
        secrets: informer(secrets()),
        accounts: informer(accounts()),
        source,
        root_ca: BASE64.encode(&options.root_ca),
    });
    manager.add(engine.controller(options.workers));
}

fn secrets() -> ResourceKind {
    core_kind("Secret", "secrets")
}

fn accounts() -> ResourceKind {
    core_kind("ServiceAccount", "serviceaccounts")
}

struct Engine {
    secrets: SharedInformer,
    accounts: SharedInformer,
    source: Arc<dyn TokenSource>,
    /// The certificate authority as Secrets hold it; empty for none.
    root_ca: String,
}

impl Engine {
    fn controller(self: Arc<Self>, workers: usize) -> Controller {
        let of_accounts = self.clone();
        Controller::of_kind(secrets(), move |key: Key, cx: Context| {
            let engine = self.clone();
            async move { engine.sync(&key, &cx).await }
        })
        .filter(|change| change.object().is_some_and(is_token))
        .reacts_to_kind(accounts(), move |change| of_accounts.secrets_after(change))
        .named(NAME)
        .queue_named("serviceaccount_tokens_secret")
        .max_retries(RETRIES)
        .workers(workers)
    }

    /// An account that is gone, or another by now, takes its tokens with it.
    fn secrets_after(&self, change: &Change<'_>) -> Vec<Trigger> {
        let Some(old) = change.old else {
            return Vec::new();
        };
        let is_same = change.new.is_some_and(|new| new.uid() == old.uid());
        if is_same {
            return Vec::new();
        }
        let secrets = self.secrets.lister();
        let secrets = secrets.list_in(old.namespace(), &Selector::everything());
        let of = secrets
            .iter()
            .filter(|it| is_token(it) && it.meta().annotation(ACCOUNT_NAME) == Some(old.name()));
        of.map(|secret| Trigger::now(secret.key())).collect()
    }

    async fn sync(&self, key: &Key, cx: &Context) -> Result<Action> {
        let Some(secret) = self.secrets.lister().get(key).filter(is_token) else {
            self.forget(key, cx).await?;
            return Ok(Action::done());
        };
        let (namespace, meta) = (secret.namespace(), secret.meta());
        let Some(name) = meta.annotation(ACCOUNT_NAME).filter(|it| !it.is_empty()) else {
            return Ok(Action::done());
        };
        let uid = meta.annotation(ACCOUNT_UID).unwrap_or("");
        match self.account(cx, namespace, name, uid).await? {
            Some(account) => self.fill(cx, &secret, &account).await?,
            None => self.delete(cx, &secret).await?,
        }
        Ok(Action::done())
    }

    /// The account that a Secret names. The cache may be behind, so the server is asked before the
    /// answer is no.
    async fn account(
        &self,
        cx: &Context,
        namespace: &str,
        name: &str,
        uid: &str,
    ) -> Result<Option<Doc>> {
        let is_meant = |it: &Doc| uid.is_empty() || it.meta().uid_str() == uid;
        let cached = self.accounts.lister().get(&Key::new(namespace, name));
        if let Some(cached) = cached.filter(|it| is_meant(it.doc())) {
            return Ok(Some(cached.doc().clone()));
        }
        match cx.api(&accounts(), namespace).get(name).await {
            Ok(live) => Ok(Some(live).filter(is_meant)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn delete(&self, cx: &Context, secret: &Obj) -> Result<()> {
        let api = cx.api(&secrets(), secret.namespace());
        let options = DeleteOptions::uid(secret.uid().as_str());
        match api.delete(secret.name(), &options).await {
            Err(error) if !is_over(&error) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Fills in what is missing, in the newest state of the Secret.
    async fn fill(&self, cx: &Context, secret: &Obj, account: &Doc) -> Result<()> {
        if self.filled(secret.doc(), account)?.is_none() {
            return Ok(());
        }
        let api = cx.api(&secrets(), secret.namespace());
        let live = match api.get(secret.name()).await {
            Ok(live) => live,
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        // Somebody else has written it; the cache will show that.
        if live.meta().resource_version() != secret.meta().resource_version() {
            return Ok(());
        }
        let Some(filled) = self.filled(&live, account)? else {
            return Ok(());
        };
        let options = WriteOptions::manager(NAME).metadata_only();
        match api.update(&filled, &options).await {
            Err(error) if !is_over(&error) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// A Secret with everything that it should hold; `None` if it does already.
    fn filled(&self, secret: &Doc, account: &Doc) -> Result<Option<Doc>> {
        let data = secret.at("/data");
        let text = |key: &str| data.get(key).and_then(Doc::as_str).unwrap_or("");
        let needs_ca = !self.root_ca.is_empty() && text("ca.crt") != self.root_ca;
        let needs_namespace = text("namespace").is_empty();
        let needs_token = text("token").is_empty();
        if !needs_ca && !needs_namespace && !needs_token {
            return Ok(None);
        }
        let meta = secret.meta();
        let mut filled = match data.is_null() {
            true => secret.with("/data", Doc::empty_object())?,
            false => secret.clone(),
        };
        if needs_ca {
            filled = filled.with("/data/ca.crt", self.root_ca.as_str())?;
        }
        if needs_namespace {
            filled = filled.with("/data/namespace", BASE64.encode(meta.namespace()))?;
        }
        if needs_token {
            let token = self.source.sign(&claims(secret, account));
            let token = token.ok_or_else(|| windlass_runtime::Error::msg("no token was signed"))?;
            filled = filled.with("/data/token", BASE64.encode(token))?;
        }
        let patch = doc!({ "metadata": { "annotations": {
            ACCOUNT_NAME: (account.meta().name()), ACCOUNT_UID: (account.meta().uid_str()),
        } } });
        Ok(Some(windlass_core::merge_patch(&filled, &patch)))
    }

    /// Takes a Secret that is gone off the lists of the accounts that name it.
    async fn forget(&self, key: &Key, cx: &Context) -> Result<()> {
        let namespace = key.namespace().unwrap_or_default();
        let found = self.accounts.lister();
        let found = found.list_in(namespace, &Selector::everything());
        let api = cx.api(&accounts(), namespace);
        for account in found.iter().filter(|it| names(it.doc(), key.name())) {
            let kept = account.doc().at("/secrets").items().iter();
            let kept = kept.filter(|it| it.str_at("/name") != key.name()).cloned();
            let kept: Vec<Doc> = kept.collect();
            let changed = account.doc().with("/secrets", kept)?;
            let options = WriteOptions::manager(NAME).metadata_only();
            match api.update(&changed, &options).await {
                Err(error) if !error.is_not_found() => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Returns true if a Secret holds a token of an account.
fn is_token(secret: &Obj) -> bool {
    secret.doc().str_at("/type") == TOKEN_TYPE
}

/// Returns true if an account lists a Secret.
fn names(account: &Doc, secret: &str) -> bool {
    let mut secrets = account.at("/secrets").items().iter();
    secrets.any(|it| it.str_at("/name") == secret)
}

/// Returns true if a write came too late to matter.
fn is_over(error: &Error) -> bool {
    error.is_not_found() || error.is_conflict()
}

/// The claims of a token without an end: it is good as long as its Secret and its account are there.
fn claims(secret: &Doc, account: &Doc) -> Doc {
    let (namespace, name) = (account.meta().namespace(), account.meta().name());
    doc!({
        "iss": ISSUER,
        "sub": (format!("system:serviceaccount:{namespace}:{name}")),
        "kubernetes.io/serviceaccount/namespace": namespace,
        "kubernetes.io/serviceaccount/secret.name": (secret.meta().name()),
        "kubernetes.io/serviceaccount/service-account.name": name,
        "kubernetes.io/serviceaccount/service-account.uid": (account.meta().uid_str()),
    })
}
