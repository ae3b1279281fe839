// An ordinary envtest project: nothing in it knows what serves its requests.
package envtest

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var (
	environment *envtest.Environment
	config      *rest.Config
	widgetKind  = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
)

func TestMain(m *testing.M) {
	environment = &envtest.Environment{
		CRDDirectoryPaths:     []string{"crds"},
		ErrorIfCRDPathMissing: true,
	}
	var err error
	if config, err = environment.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "start:", err)
		os.Exit(1)
	}
	code := m.Run()
	if err := environment.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop:", err)
		code = 1
	}
	os.Exit(code)
}

func newClient(t *testing.T) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func widget(name string, size int64) *unstructured.Unstructured {
	w := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": size}}}
	w.SetGroupVersionKind(widgetKind)
	w.SetName(name)
	w.SetNamespace("default")
	return w
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatal("timed out: ", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// A controller makes one ConfigMap for each unit of a widget's size, and counts them.
type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	w := widget("", 0)
	if err := r.Get(ctx, request.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	size, _, _ := unstructured.NestedInt64(w.Object, "spec", "size")
	for i := range size {
		child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", w.GetName(), i), Namespace: w.GetNamespace(),
		}}
		_, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
			child.Data = map[string]string{"index": fmt.Sprint(i)}
			return controllerutil.SetControllerReference(w, child, r.Scheme())
		})
		if err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := unstructured.SetNestedField(w.Object, size, "status", "children"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.Status().Update(ctx, w)
}

func TestControllerReconcilesACustomResource(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	err = ctrl.NewControllerManagedBy(manager).For(widget("", 0)).Owns(&corev1.ConfigMap{}).
		Complete(&reconciler{manager.GetClient()})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- manager.Start(ctx) }()
	c := newClient(t)
	if err := c.Create(ctx, widget("three", 3)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "three children and their count", func() bool {
		found := widget("", 0)
		if c.Get(ctx, types.NamespacedName{Namespace: "default", Name: "three"}, found) != nil {
			return false
		}
		children, _, _ := unstructured.NestedInt64(found.Object, "status", "children")
		var maps corev1.ConfigMapList
		if err := c.List(ctx, &maps, client.InNamespace("default")); err != nil {
			return false
		}
		owned := 0
		for _, m := range maps.Items {
			if metav1.IsControlledBy(&m, found) {
				owned++
			}
		}
		return children == 3 && owned == 3
	})
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func TestSchemaOfACustomResourceIsEnforced(t *testing.T) {
	err := newClient(t).Create(context.Background(), widget("none", 0))
	if !apierrors.IsInvalid(err) {
		t.Fatal("not refused as invalid: ", err)
	}
}

func TestAnonymousSeesHealthAndNoPods(t *testing.T) {
	anonymous := kubernetes.NewForConfigOrDie(rest.AnonymousClientConfig(config))
	text, err := anonymous.RESTClient().Get().AbsPath("/healthz").DoRaw(context.Background())
	if err != nil || string(text) != "ok" {
		t.Fatal(string(text), err)
	}
	_, err = anonymous.CoreV1().Pods("default").List(context.Background(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Fatal("not forbidden: ", err)
	}
}

func TestGroupsOfAddedUsersGetTheirRights(t *testing.T) {
	if environment.ControlPlane.APIServer == nil {
		t.Skip("users come from the control plane, which this run does not start")
	}
	ctx, c := context.Background(), newClient(t)
	user, err := environment.AddUser(envtest.User{Name: "jane", Groups: []string{"readers"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "readers"},
		Subjects:   []rbacv1.Subject{{Kind: "Group", Name: "readers", APIGroup: "rbac.authorization.k8s.io"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "view"},
	}
	if err := c.Create(ctx, binding); err != nil {
		t.Fatal(err)
	}
	jane := kubernetes.NewForConfigOrDie(user.Config())
	if _, err := jane.CoreV1().Pods("default").List(ctx, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = jane.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "hers"},
	}, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Fatal("not forbidden: ", err)
	}
}

func TestTokensOfServiceAccountsAreAccepted(t *testing.T) {
	ctx := context.Background()
	admin := kubernetes.NewForConfigOrDie(config)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "builder"}}
	if _, err := admin.CoreV1().ServiceAccounts("default").Create(ctx, account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	request, err := admin.CoreV1().ServiceAccounts("default").CreateToken(
		ctx, "builder", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	review, err := admin.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: request.Status.Token},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := review.Status.User.Username; got != "system:serviceaccount:default:builder" {
		t.Fatal(got, review.Status.Error)
	}
}

func TestNobodyCollectsGarbageOrEndsNamespaces(t *testing.T) {
	ctx := context.Background()
	admin := kubernetes.NewForConfigOrDie(config)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "going"}}
	if _, err := admin.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := admin.CoreV1().Namespaces().Delete(ctx, "going", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	found, err := admin.CoreV1().Namespaces().Get(ctx, "going", metav1.GetOptions{})
	if err != nil || found.Status.Phase != corev1.NamespaceTerminating {
		t.Fatal(found, err)
	}
}

func TestServicesGetAddressesOfTheNetworkOfEnvtest(t *testing.T) {
	if environment.ControlPlane.APIServer == nil {
		t.Skip("the network is that of the control plane, which this run does not start")
	}
	ctx := context.Background()
	admin := kubernetes.NewForConfigOrDie(config)
	own, err := admin.CoreV1().Services("default").Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil || own.Spec.ClusterIP != "10.0.0.1" {
		t.Fatal(own, err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "plain"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx"}}},
	}
	made, err := admin.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if made.Spec.ServiceAccountName != "" || len(made.Spec.Volumes) != 0 {
		t.Fatal("the plug-in ServiceAccount is on: ", made.Spec)
	}
}
