//go:build unix

// Package kubernetes reads the files of this folder, and those of
// examples/compose, as the programs do that they are for, and runs what they
// start. It is a module of its own, so that the types of Kubernetes are no
// dependency of redlatch.
package kubernetes

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/deploytest"
)

func TestMain(m *testing.M) { deploytest.Main(m) }

// kinds are the types of the objects in this folder.
var kinds = map[string]func() any{
	"v1 ConfigMap":                  func() any { return new(corev1.ConfigMap) },
	"v1 Secret":                     func() any { return new(corev1.Secret) },
	"v1 Service":                    func() any { return new(corev1.Service) },
	"apps/v1 StatefulSet":           func() any { return new(appsv1.StatefulSet) },
	"apps/v1 Deployment":            func() any { return new(appsv1.Deployment) },
	"batch/v1 Job":                  func() any { return new(batchv1.Job) },
	"batch/v1 CronJob":              func() any { return new(batchv1.CronJob) },
	"policy/v1 PodDisruptionBudget": func() any { return new(policyv1.PodDisruptionBudget) },
}

// objects reads a file. An unknown field, a field twice, or a value of the wrong
// type is an error.
func objects(t *testing.T, file string) (all []any) {
	t.Helper()
	text, err := os.ReadFile(file)
	check.Must(t, err)
	for i, doc := range bytes.Split(text, []byte("\n---\n")) {
		var head metav1.TypeMeta
		check.Must(t, yaml.Unmarshal(doc, &head))
		kind := kinds[head.APIVersion+" "+head.Kind]
		if kind == nil {
			t.Fatalf("%s, document %d: the kind %s %s is unknown", file, i, head.APIVersion, head.Kind)
		}
		object := kind()
		if err := strictly(doc, object); err != nil {
			t.Fatalf("%s, document %d, %s: %v", file, i, head.Kind, err)
		}
		all = append(all, object)
	}
	return all
}

// strictly decodes as an API server does that validates fields: the case of
// their names counts.
func strictly(doc []byte, into any) error {
	text, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return err
	}
	strict, err := json.UnmarshalStrict(text, into)
	return errors.Join(append(strict, err)...)
}

// one returns the object of a type in a file.
func one[T any](t *testing.T, file string) *T {
	t.Helper()
	var found []*T
	for _, object := range objects(t, file) {
		if o, ok := object.(*T); ok {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s has %d objects of the kind %T", file, len(found), *new(T))
	}
	return found[0]
}

func TestFilesHaveKnownFieldsOnly(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, file := range files {
		for _, object := range objects(t, file) {
			if pod := podOf(object); pod != nil {
				checkPod(t, file, pod)
			}
		}
	}
}

// podOf is the pod that an object starts; nil for none.
func podOf(object any) *corev1.PodSpec {
	switch o := object.(type) {
	case *appsv1.StatefulSet:
		return &o.Spec.Template.Spec
	case *appsv1.Deployment:
		return &o.Spec.Template.Spec
	case *batchv1.Job:
		return &o.Spec.Template.Spec
	case *batchv1.CronJob:
		return &o.Spec.JobTemplate.Spec.Template.Spec
	}
	return nil
}

// checkPod checks what the types do not: volumes that are mounted are there.
func checkPod(t *testing.T, file string, pod *corev1.PodSpec) {
	t.Helper()
	volumes := map[string]bool{"data": true} // a claim of the StatefulSet
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
	}
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		for _, mount := range c.VolumeMounts {
			if !volumes[mount.Name] {
				t.Errorf("%s: %s mounts %s, which is not there", file, c.Name, mount.Name)
			}
		}
	}
}

// cluster is where pods run: paths and addresses of theirs are replaced by some
// of the test's.
type cluster struct {
	t       *testing.T
	dir     string
	secret  *corev1.Secret
	replace *strings.Replacer
}

// newCluster starts the servers of servers.yaml.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	program := deploytest.Program(t)
	dir := t.TempDir()
	c := &cluster{t: t, dir: dir, secret: one[corev1.Secret](t, "servers.yaml")}
	set := one[appsv1.StatefulSet](t, "servers.yaml")
	service := one[corev1.Service](t, "servers.yaml")
	budget := one[policyv1.PodDisruptionBudget](t, "servers.yaml")
	for _, selector := range []map[string]string{service.Spec.Selector, set.Spec.Selector.MatchLabels, budget.Spec.Selector.MatchLabels} {
		if fmt.Sprint(selector) != fmt.Sprint(set.Spec.Template.Labels) {
			t.Errorf("a selector is %v, and the pods have %v", selector, set.Spec.Template.Labels)
		}
	}
	if set.Spec.ServiceName != service.Name || service.Spec.ClusterIP != "None" {
		t.Errorf("the service of the set is %s, of %s", set.Spec.ServiceName, service.Name)
	}
	command := set.Spec.Template.Spec.Containers[0].Command
	if len(command) != 2 || command[0] != "redis-server" || command[1] != "/etc/redis/redis.conf" {
		t.Fatalf("the servers are started with %q", command)
	}
	acl := filepath.Join(dir, "users.acl")
	check.Must(t, os.WriteFile(acl, []byte(c.secret.StringData["users.acl"]), 0o600))
	conf := one[corev1.ConfigMap](t, "servers.yaml").Data["redis.conf"]
	replaced := []string{"/usr/bin/redlatch install", program + " install", "/tools", filepath.Join(dir, "tools"), "/app", filepath.Join(dir, "app")}
	for i := range *set.Spec.Replicas {
		name := fmt.Sprintf("%s-%d", set.Name, i)
		data := filepath.Join(dir, name)
		check.Must(t, os.Mkdir(data, 0o700))
		file := filepath.Join(data, "redis.conf")
		text := strings.NewReplacer("/data", data, "/etc/redis-acl/users.acl", acl).Replace(conf)
		check.Must(t, os.WriteFile(file, []byte(text), 0o600))
		replaced = append(replaced, name+"."+service.Name+":6379", deploytest.Serve(t, file))
	}
	check.Must(t, os.Mkdir(filepath.Join(dir, "tools"), 0o755))
	c.replace = strings.NewReplacer(replaced...)
	return c
}

// command is what a container starts.
func (c *cluster) command(container corev1.Container) deploytest.Command {
	c.t.Helper()
	var env []string
	for _, e := range container.Env {
		value := e.Value
		if e.ValueFrom != nil {
			ref := e.ValueFrom.SecretKeyRef
			if value = c.secret.StringData[ref.Key]; ref.Name != c.secret.Name || value == "" {
				c.t.Errorf("%s is from %v, which is not there", e.Name, ref)
			}
		}
		env = append(env, e.Name+"="+c.replace.Replace(value))
	}
	var args []string
	for _, word := range append(container.Command, container.Args...) {
		if word == "/usr/bin/redlatch" {
			word = deploytest.Program(c.t)
		}
		// A reference $(NAME) to a variable that does not exist stays as it is.
		args = append(args, c.replace.Replace(strings.ReplaceAll(word, "$$", "$")))
	}
	return deploytest.Command{Args: args, Env: env, Dir: c.dir}
}

// pod runs the containers of a pod, and returns the exit status and the output
// of the last one.
func (c *cluster) pod(pod *corev1.PodSpec) (int, string) {
	c.t.Helper()
	for _, container := range pod.InitContainers {
		if code, out := c.command(container).Run(c.t); code != 0 {
			c.t.Fatalf("init container %s: exit %d, %s", container.Name, code, out)
		}
	}
	return c.command(pod.Containers[0]).Run(c.t)
}

func TestPodsRunWhatTheySay(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	deploytest.DeclareNew(t, c.command(podOf(one[batchv1.Job](t, "init.yaml")).Containers[0]))

	job := podOf(one[batchv1.CronJob](t, "cronjob.yaml"))
	ran := filepath.Join(c.dir, "ran")
	deploytest.Script(t, filepath.Join(c.dir, "app", "report"), "#!/bin/sh\necho $REDLATCH_TOKEN >>"+ran+"\n")
	for i, want := range []string{`"event":"released"`, `"event":"completed"`} {
		if code, out := c.pod(job); code != 0 || !strings.Contains(out, want) {
			t.Errorf("pod %d of the job: exit %d, %s", i, code, out)
		}
	}
	if text, err := os.ReadFile(ran); err != nil || len(strings.Fields(string(text))) != 1 {
		t.Errorf("the report ran %q, %v", text, err)
	}

	deploytest.Script(t, filepath.Join(c.dir, "app", "scheduler"), "#!/bin/sh\necho \"leads with $REDLATCH_TOKEN\"\nexit 3\n")
	if code, out := c.pod(podOf(one[appsv1.Deployment](t, "leader.yaml"))); code != 3 || !strings.Contains(out, "leads with 0") {
		t.Errorf("leader: exit %d, %s", code, out)
	}

	// The servers are as doctor wants them, for the user that the pods name.
	env := c.command(job.Containers[0]).Env
	doctor := deploytest.Command{Args: []string{deploytest.Program(t), "doctor"}, Env: env}
	if code, out := doctor.Run(t); code != 0 || strings.Contains(out, "danger") {
		t.Errorf("doctor: exit %d, %s", code, out)
	}
}

// TestUpdateWaitsForTheQuarantine: the set goes on to the next server when the
// last one is in service again.
func TestUpdateWaitsForTheQuarantine(t *testing.T) {
	set := one[appsv1.StatefulSet](t, "servers.yaml")
	const quarantine, maxTTL = 32, 30 // seconds: with the default cluster parameters
	if set.Spec.MinReadySeconds < quarantine+maxTTL {
		t.Errorf("minReadySeconds is %d, less than the quarantine of %d s and MaxTTL, %d s", set.Spec.MinReadySeconds, quarantine, maxTTL)
	}
}
