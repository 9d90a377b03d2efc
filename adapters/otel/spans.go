package redlatchotel

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// The attributes of spans and of their events.
const (
	spanName      = attribute.Key("redlatch.name")
	spanTTL       = attribute.Key("redlatch.ttl_seconds")
	spanNodes     = attribute.Key("redlatch.nodes")
	spanRounds    = attribute.Key("redlatch.rounds")
	spanOutcome   = attribute.Key("redlatch.outcome")
	spanToken     = attribute.Key("redlatch.token")
	spanMaxHold   = attribute.Key("redlatch.max_hold_seconds")
	spanMode      = attribute.Key("redlatch.mode")
	spanSlot      = attribute.Key("redlatch.slot")
	spanAttached  = attribute.Key("redlatch.attached")
	spanExtended  = attribute.Key("redlatch.extensions")
	eventPlace    = attribute.Key("redlatch.place")
	eventHolder   = attribute.Key("redlatch.holder")
	eventWaitFor  = attribute.Key("redlatch.waits_for")
	eventGranted  = attribute.Key("redlatch.granted")
	eventRefused  = attribute.Key("redlatch.refused")
	eventFailed   = attribute.Key("redlatch.failed")
	eventAnswers  = attribute.Key("redlatch.answers")
	eventDuration = attribute.Key("redlatch.duration_seconds")
)

// name returns the attribute of a lock's name.
func (o *Observer) name(e *entry, full string) attribute.KeyValue {
	if o.fullNames {
		return spanName.String(strings.ToValidUTF8(full, "\uFFFD"))
	}
	return e.Data.name
}

// startLock begins the span of a request.
func (o *Observer) startLock(ctx context.Context, e *entry, start observe.LockStart) (context.Context, trace.Span) {
	ctx, span := o.tracer.Start(ctx, e.Data.lock, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(o.name(e, start.Name)))
	if span.IsRecording() {
		span.SetAttributes(spanTTL.Float64(start.TTL.Seconds()), spanNodes.Int(start.Nodes))
	}
	return ctx, span
}

// endLock ends the span of a request.
func (p *progress) endLock(end observe.LockEnd) {
	if p.span.IsRecording() {
		p.span.SetAttributes(spanRounds.Int(end.Rounds), spanOutcome.String(observe.Outcome(end.Err)))
		if end.Token != 0 {
			p.span.SetAttributes(spanToken.String(end.Token.String()))
		}
		p.status(end.Err)
	}
	p.span.End()
}

// status marks the span as failed, if there is an error.
func (p *progress) status(err error) {
	switch {
	case err == nil:
	case p.o.fullNames:
		p.span.SetStatus(codes.Error, strings.ToValidUTF8(err.Error(), "\uFFFD"))
	default:
		p.span.SetStatus(codes.Error, observe.Outcome(err))
	}
}

// waitFor is what a caller waits for.
type waitFor struct {
	place           int
	outcome, holder string
}

// waits adds an event to the span of a request, if the caller now waits for
// something else than before.
func (p *progress) waits(w observe.Waiting) {
	if !p.span.IsRecording() {
		return
	}
	now := waitFor{place: w.Place, outcome: observe.Outcome(w.Err)}
	if held, ok := errors.AsType[*redlatch.HeldError](w.Err); ok && len(held.Holders) > 0 {
		now.holder = strings.ToValidUTF8(held.Holders[0].Owner, "\uFFFD")
	}
	if now == p.waitFor {
		return
	}
	p.waitFor = now
	event := []attribute.KeyValue{eventWaitFor.String(now.outcome), eventPlace.Int(now.place)}
	if now.holder != "" {
		event = append(event, eventHolder.String(now.holder))
	}
	p.span.AddEvent("waiting", trace.WithAttributes(event...))
}

// round adds what a round did to the span.
func (p *progress) round(end observe.RoundEnd, noQuorum bool) {
	switch {
	case !p.span.SpanContext().IsSampled():
		return
	case p.lease && end.Op == node.OpRelease:
		p.released(end, noQuorum)
		return
	case p.lease && end.Op == node.OpExtend && end.Won:
		p.extensions.Add(1)
		if !p.failing.Swap(false) {
			return // a lease may have thousands
		}
	case p.lease && end.Op == node.OpExtend:
		p.failing.Store(true)
	}
	if p.span.IsRecording() {
		p.span.AddEvent(roundName(end, noQuorum), trace.WithAttributes(roundAttributes(end)...))
	}
}

// released makes a span of a lease's release, which ends after the lease.
func (p *progress) released(end observe.RoundEnd, noQuorum bool) {
	now := time.Now()
	_, span := p.o.tracer.Start(p.Context, p.entry.Data.release, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithTimestamp(now.Add(-end.Elapsed)), trace.WithAttributes(p.o.name(p.entry, end.Name)))
	if span.IsRecording() {
		span.SetAttributes(roundAttributes(end)...)
		if !end.Won {
			span.SetStatus(codes.Error, roundName(end, noQuorum))
		}
	}
	span.End(trace.WithTimestamp(now))
}

func roundName(end observe.RoundEnd, noQuorum bool) string {
	switch {
	case end.Won:
		return end.Op.String()
	case noQuorum:
		return end.Op.String() + " without quorum"
	}
	return end.Op.String() + " refused"
}

func roundAttributes(end observe.RoundEnd) []attribute.KeyValue {
	all := []attribute.KeyValue{
		eventGranted.Int(end.Granted), eventRefused.Int(end.Refused), eventFailed.Int(end.Failed),
		eventDuration.Float64(end.Elapsed.Seconds()),
	}
	if len(end.Nodes) > 0 {
		answers := make([]string, len(end.Nodes))
		for i, r := range end.Nodes {
			answers[i] = strings.ToValidUTF8(r.String(), "\uFFFD")
		}
		all = append(all, eventAnswers.StringSlice(answers))
	}
	return all
}

// startHold begins the span of a lease. request is nil if there was none.
func (o *Observer) startHold(ctx context.Context, e *entry, request *progress, start observe.LeaseStart) (context.Context, trace.Span) {
	opts := []trace.SpanStartOption{trace.WithAttributes(o.name(e, start.Name))}
	if request != nil {
		// Beside the request, which ends now, and not below it.
		ctx = trace.ContextWithSpan(ctx, request.caller)
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: request.span.SpanContext()}))
	}
	ctx, span := o.tracer.Start(ctx, e.Data.hold, opts...)
	if !span.IsRecording() {
		return ctx, span
	}
	span.SetAttributes(spanTTL.Float64(start.TTL.Seconds()), spanMaxHold.Float64(start.MaxHold.Seconds()), spanAttached.Bool(start.Attached))
	if start.Token != 0 {
		span.SetAttributes(spanToken.String(start.Token.String()))
	}
	switch {
	case start.Shared:
		span.SetAttributes(spanMode.String("shared"))
	case start.Slots > 0:
		span.SetAttributes(spanMode.String("slots"), spanSlot.Int(start.Slot))
	default:
		span.SetAttributes(spanMode.String("exclusive"))
	}
	return ctx, span
}

// endHold ends the span of a lease.
func (p *progress) endHold(end observe.LeaseEnd) {
	if p.span.IsRecording() {
		p.span.SetAttributes(spanOutcome.String(observe.Outcome(end.Cause)), spanExtended.Int64(p.extensions.Load()))
		if errors.Is(end.Cause, redlatch.ErrLost) {
			p.status(end.Cause)
		}
	}
	p.span.End()
}
