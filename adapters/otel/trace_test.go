package redlatchotel_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapters/otel"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/memory"
)

var must = check.Must

var update = flag.Bool("update", false, "write testdata/trace.txt anew")

// tracing is a client whose spans are kept.
type tracing struct {
	locks *redlatch.Client
	spans *tracetest.InMemoryExporter
	trace.Tracer
}

func newTracing(t *testing.T, nodes []redlatch.Node, opts redlatchotel.Options) *tracing {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	opts.TracerProvider, opts.MeterProvider = provider, noop.NewMeterProvider()
	observer, err := redlatchotel.New(&opts)
	must(t, err)
	return &tracing{locktest.NewClient(t, nodes, redlatch.Options{Observer: observer, Label: "worker"}), spans, provider.Tracer("caller")}
}

// render returns spans as text: times from the first span on, and the names of
// spans instead of their numbers.
func render(spans tracetest.SpanStubs) string {
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int {
		return cmp.Or(a.StartTime.Compare(b.StartTime), b.EndTime.Compare(a.EndTime))
	})
	names := map[trace.SpanID]string{}
	for _, s := range spans {
		names[s.SpanContext.SpanID()] = s.Name
	}
	first := spans[0].StartTime
	at := func(t time.Time) string { return "+" + t.Sub(first).String() }
	var b strings.Builder
	for i, s := range spans {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "span %q from %s to %s\n", s.Name, at(s.StartTime), at(s.EndTime))
		if parent := names[s.Parent.SpanID()]; parent != "" {
			fmt.Fprintf(&b, "  child of %q\n", parent)
		}
		for _, l := range s.Links {
			fmt.Fprintf(&b, "  link to %q\n", names[l.SpanContext.SpanID()])
		}
		if s.Status.Code == codes.Error {
			fmt.Fprintf(&b, "  error: %s\n", s.Status.Description)
		}
		writeAttributes(&b, "  ", s.Attributes)
		for _, e := range s.Events {
			fmt.Fprintf(&b, "  %s event %q\n", at(e.Time), e.Name)
			writeAttributes(&b, "    ", e.Attributes)
		}
	}
	return normal(b.String())
}

func writeAttributes(b *strings.Builder, indent string, all []attribute.KeyValue) {
	for _, a := range all {
		if a.Value.Type() == attribute.STRINGSLICE {
			fmt.Fprintf(b, "%s%s:\n", indent, a.Key)
			for _, v := range a.Value.AsStringSlice() {
				fmt.Fprintf(b, "%s  %s\n", indent, v)
			}
			continue
		}
		fmt.Fprintf(b, "%s%s = %s\n", indent, a.Key, a.Value.String())
	}
}

var (
	owner = regexp.MustCompile(`[^ /=]+/\d+/worker`)
	token = regexp.MustCompile(`(redlatch\.token = )\d+`)
)

// normal replaces what is different in every run.
func normal(text string) string {
	return token.ReplaceAllString(owner.ReplaceAllString(text, "host/4711/worker"), "${1}1794825600000000")
}

// far is a node in memory that takes a time of its own to answer, so that answers
// come in the same order in every run.
type far struct {
	*memory.Node
	away time.Duration
}

func (f far) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	time.Sleep(f.away)
	reply, err := f.Node.Do(ctx, req)
	time.Sleep(f.away)
	return reply, err
}

func farNodes() (nodes []redlatch.Node) {
	for i, n := range memory.Nodes(3) {
		nodes = append(nodes, far{n.(*memory.Node), time.Duration(i+1) * time.Millisecond})
	}
	return nodes
}

// TestTraceOfAContendedLock makes the trace that docs/metrics.md shows, and
// compares it with the file that it is shown from.
func TestTraceOfAContendedLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTracing(t, farNodes(), redlatchotel.Options{})
		first := locktest.MustLock(t, tr.locks, "orders/42", redlatch.LockOptions{})
		time.AfterFunc(500*time.Millisecond, func() { first.Release(context.Background()) })

		ctx, handle := tr.Start(t.Context(), "handle order")
		lease, err := tr.locks.Lock(ctx, "orders/42", nil)
		must(t, err)
		time.Sleep(5 * time.Second)
		lease.Release(ctx)
		handle.End()
		time.Sleep(time.Second)

		trace := slices.DeleteFunc(tr.spans.GetSpans(), func(s tracetest.SpanStub) bool {
			return s.SpanContext.TraceID() != handle.SpanContext().TraceID()
		})
		got := render(trace)
		const file = "testdata/trace.txt"
		if *update {
			must(t, os.WriteFile(file, []byte(got), 0o644))
		}
		want, err := os.ReadFile(file)
		must(t, err)
		if got != string(want) {
			t.Errorf("%s, which -update writes anew, is not the trace:\n%s", file, got)
		}
	})
}

// find returns the only span of a name.
func find(t *testing.T, spans tracetest.SpanStubs, name string) tracetest.SpanStub {
	t.Helper()
	var found tracetest.SpanStubs
	for _, s := range spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("there are %d spans %q:\n%s", len(found), name, render(spans))
	}
	return found[0]
}

// value returns an attribute of a span as text.
func value(s tracetest.SpanStub, key attribute.Key) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}

func TestFailedRequestIsAnErrorAndHasNoFullName(t *testing.T) {
	for _, full := range []bool{false, true} {
		t.Run(fmt.Sprint("full names: ", full), func(t *testing.T) {
			tr := newTracing(t, memory.Nodes(3), redlatchotel.Options{FullNames: full})
			locktest.MustLock(t, tr.locks, "orders/42", redlatch.LockOptions{})
			tr.spans.Reset()
			if _, err := tr.locks.TryLock(t.Context(), "orders/42", nil); err == nil {
				exclusion.Never(t, "it was granted twice")
			}
			span := find(t, tr.spans.GetSpans(), "lock orders/*")
			text := render(tr.spans.GetSpans())
			if span.Status.Code != codes.Error || value(span, "redlatch.outcome") != "held" || span.SpanKind != trace.SpanKindClient ||
				strings.Contains(text, "orders/42") != full || !full && span.Status.Description != "held" {
				t.Errorf("the span is\n%s", text)
			}
		})
	}
}

func TestLeaseThatIsLostIsAnErrorWithTheExtensionsThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := memory.Nodes(3)
		tr := newTracing(t, nodes, redlatchotel.Options{})
		lease := locktest.MustLock(t, tr.locks, "job", redlatch.LockOptions{})
		down := func(err error) {
			for _, n := range nodes[:2] {
				n.(*memory.Node).SetDown(err)
			}
		}
		time.Sleep(11 * time.Second)
		down(errors.New("down"))
		time.Sleep(4 * time.Second)
		down(nil)
		time.Sleep(20 * time.Second)
		if lease.Err() != nil {
			t.Fatal(lease.Err())
		}
		down(errors.New("down"))
		time.Sleep(time.Minute)
		span := find(t, tr.spans.GetSpans(), "hold job")
		if span.Status.Code != codes.Error || span.Status.Description != "not_extended" || value(span, "redlatch.outcome") != "not_extended" {
			t.Errorf("the span is\n%s", render(tr.spans.GetSpans()))
		}
		var got []string
		for _, e := range span.Events {
			got = append(got, e.Name)
		}
		back := slices.Index(got, "extend")
		if len(got) < 3 || got[0] != "extend without quorum" || back < 1 || slices.Contains(got[back+1:], "extend") || got[len(got)-1] != "extend without quorum" {
			t.Errorf("the events are %q", got)
		}
		if n, _ := strconv.Atoi(value(span, "redlatch.extensions")); n < 6 || n > 12 {
			t.Errorf("it was extended %d times", n)
		}
	})
}

func TestWithoutACallersSpanRequestAndLeaseAreRootsWithALink(t *testing.T) {
	tr := newTracing(t, memory.Nodes(1), redlatchotel.Options{})
	lease := locktest.MustLock(t, tr.locks, "job", redlatch.LockOptions{})
	handle, err := lease.Detach()
	must(t, err)
	wait, hold := find(t, tr.spans.GetSpans(), "lock job"), find(t, tr.spans.GetSpans(), "hold job")
	if wait.Parent.IsValid() || hold.Parent.IsValid() || len(hold.Links) != 1 || hold.Links[0].SpanContext.SpanID() != wait.SpanContext.SpanID() {
		t.Errorf("the spans are\n%s", render(tr.spans.GetSpans()))
	}
	if hold.Status.Code == codes.Error || value(hold, "redlatch.outcome") != "detached" {
		t.Errorf("the spans are\n%s", render(tr.spans.GetSpans()))
	}
	tr.spans.Reset()
	ctx, caller := tr.Start(t.Context(), "caller")
	lease, err = tr.locks.Attach(ctx, handle)
	must(t, err)
	lease.Release(ctx)
	caller.End()
	hold = find(t, tr.spans.GetSpans(), "hold job")
	if value(hold, "redlatch.attached") != "true" || len(hold.Links) != 0 || hold.Parent.SpanID() != caller.SpanContext().SpanID() {
		t.Errorf("the spans are\n%s", render(tr.spans.GetSpans()))
	}
	find(t, tr.spans.GetSpans(), "release job")
}

func TestHostileNamesGiveAFewSpanNamesOfUTF8(t *testing.T) {
	for _, full := range []bool{false, true} {
		tr := newTracing(t, memory.Nodes(1), redlatchotel.Options{
			FullNames: full, MaxLabels: 5, Label: func(name string) string { return name + "\xff\n" },
		})
		for i := range 50 {
			locktest.MustLock(t, tr.locks, fmt.Sprintf("<script>%d\u202e", i), redlatch.LockOptions{}).Release(t.Context())
		}
		names := map[string]bool{}
		for _, s := range tr.spans.GetSpans() {
			names[s.Name] = true
			if !utf8.ValidString(s.Name) || !utf8.ValidString(value(s, "redlatch.name")) {
				t.Errorf("span %q of %q", s.Name, value(s, "redlatch.name"))
			}
		}
		if len(names) != 18 || !names["lock (other)"] {
			t.Errorf("%d names of spans: %v", len(names), names)
		}
	}
}
