//! The environments of admission: match conditions of webhooks and policies, validations, messages,
//! audit annotations and mutations of policies.

use std::sync::{Arc, LazyLock};

use crate::composition::Composition;
use crate::environment::{Environment, EnvironmentBuilder};
use crate::types::{Decl, ListIdentity, Opaque, Type};

/// The variables that an expression of admission may name, besides `object`, `oldObject`,
/// `namespaceObject` and `request`, which are always there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdmissionVariables {
    /// `params`: the policy has a paramKind.
    pub has_params: bool,
    /// `authorizer` and `authorizer.requestResource`.
    pub has_authorizer: bool,
    /// `Object{}`, `JSONPatch{}` and `jsonpatch.escapeKey`: the expression is a mutation.
    pub has_patch_types: bool,
}

impl AdmissionVariables {
    /// The environment without composed variables, as match conditions of webhooks see it.
    #[must_use]
    pub fn plain_environment(self) -> Environment {
        self.builder(&any()).build()
    }

    /// The environment with `variables`, which holds the composed ones.
    #[must_use]
    pub fn environment(self, composition: &Composition) -> Environment {
        self.typed_environment(composition, &any(), &any())
    }

    /// The environment in which `object` and `oldObject` have a declared type, and `params` another.
    #[must_use]
    pub fn typed_environment(
        self,
        composition: &Composition,
        object: &Arc<Decl>,
        params: &Arc<Decl>,
    ) -> Environment {
        let mut builder = Self {
            has_params: false,
            ..self
        }
        .builder(object);
        if self.has_params {
            builder = builder.variable("params", Arc::clone(params));
        }
        builder.composed("variables", composition.decl()).build()
    }

    fn builder(self, object: &Arc<Decl>) -> EnvironmentBuilder {
        let mut builder = Environment::builder()
            .variable("object", Arc::clone(object))
            .variable("oldObject", Arc::clone(object))
            .variable("namespaceObject", Arc::clone(&NAMESPACE))
            .variable("request", request_decl());
        if self.has_params {
            builder = builder.variable("params", any());
        }
        if self.has_authorizer {
            let opaque = |opaque| Decl::plain(Type::Opaque(opaque), 0);
            builder = builder
                .variable("authorizer", opaque(Opaque::Authorizer))
                .variable("authorizer.requestResource", opaque(Opaque::ResourceCheck));
        }
        match self.has_patch_types {
            true => builder.with_patch_types(),
            false => builder,
        }
    }
}

fn any() -> Arc<Decl> {
    Decl::plain(Type::Dyn, 0)
}

fn text() -> Arc<Decl> {
    Decl::plain(Type::String, 0)
}

fn texts() -> Arc<Decl> {
    Decl::list(text(), ListIdentity::Place, 0)
}

fn object<const N: usize>(name: &str, fields: [(&str, Arc<Decl>); N]) -> Arc<Decl> {
    Decl::object(name, fields.map(|(field, decl)| (field.into(), decl)))
}

/// The declaration of `request`: an AdmissionRequest without its uid and its objects.
#[must_use]
pub fn request_decl() -> Arc<Decl> {
    static REQUEST: LazyLock<Arc<Decl>> = LazyLock::new(|| {
        let parts = |name, last| {
            object(
                name,
                [("group", text()), ("version", text()), (last, text())],
            )
        };
        let kind = parts("kubernetes.GroupVersionKind", "kind");
        let resource = parts("kubernetes.GroupVersionResource", "resource");
        let user = object(
            "kubernetes.UserInfo",
            [
                ("username", text()),
                ("uid", text()),
                ("groups", texts()),
                ("extra", Decl::map(text(), texts(), 0)),
            ],
        );
        object(
            "kubernetes.AdmissionRequest",
            [
                ("kind", Arc::clone(&kind)),
                ("resource", Arc::clone(&resource)),
                ("subResource", text()),
                ("requestKind", kind),
                ("requestResource", resource),
                ("requestSubResource", text()),
                ("name", text()),
                ("namespace", text()),
                ("operation", text()),
                ("userInfo", user),
                ("dryRun", Decl::plain(Type::Bool, 0)),
                ("options", any()),
            ],
        )
    });
    Arc::clone(&REQUEST)
}

/// The declaration of `namespaceObject`. `UID` is spelled as upstream declares it.
static NAMESPACE: LazyLock<Arc<Decl>> = LazyLock::new(|| {
    let time = || Decl::plain(Type::Timestamp, 0);
    let number = || Decl::plain(Type::Int, 0);
    let labels = || Decl::map(text(), text(), 0);
    let metadata = object(
        "kubernetes.NamespaceMetadata",
        [
            ("name", text()),
            ("generateName", text()),
            ("namespace", text()),
            ("labels", labels()),
            ("annotations", labels()),
            ("UID", text()),
            ("creationTimestamp", time()),
            ("deletionGracePeriodSeconds", number()),
            ("deletionTimestamp", time()),
            ("generation", number()),
            ("resourceVersion", text()),
            ("finalizers", texts()),
        ],
    );
    let condition = object(
        "kubernetes.NamespaceCondition",
        [
            ("status", text()),
            ("type", text()),
            ("lastTransitionTime", time()),
            ("message", text()),
            ("reason", text()),
        ],
    );
    let status = object(
        "kubernetes.NamespaceStatus",
        [
            ("conditions", Decl::list(condition, ListIdentity::Place, 0)),
            ("phase", text()),
        ],
    );
    object(
        "kubernetes.Namespace",
        [
            ("metadata", metadata),
            (
                "spec",
                object("kubernetes.NamespaceSpec", [("finalizers", texts())]),
            ),
            ("status", status),
        ],
    )
});
