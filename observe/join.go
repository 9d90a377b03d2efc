package observe

import "context"

// Join returns an observer that passes everything on to each of them, in their
// order. Each is notified of what it implements.
func Join(each ...Observer) Observer { return observers(each) }

type observers []Observer

func (all observers) LockStart(ctx context.Context, start LockStart) context.Context {
	for _, o := range all {
		ctx = o.LockStart(ctx, start)
	}
	return ctx
}

func (all observers) LockEnd(ctx context.Context, end LockEnd) {
	for _, o := range all {
		o.LockEnd(ctx, end)
	}
}

func (all observers) Waiting(ctx context.Context, w Waiting) {
	for o := range implementing[WaitObserver](all) {
		o.Waiting(ctx, w)
	}
}

func (all observers) RoundEnd(ctx context.Context, end RoundEnd) {
	for o := range implementing[RoundObserver](all) {
		o.RoundEnd(ctx, end)
	}
}

func (all observers) LeaseStart(ctx context.Context, start LeaseStart) context.Context {
	for o := range implementing[LeaseObserver](all) {
		ctx = o.LeaseStart(ctx, start)
	}
	return ctx
}

func (all observers) LeaseEnd(ctx context.Context, end LeaseEnd) {
	for o := range implementing[LeaseObserver](all) {
		o.LeaseEnd(ctx, end)
	}
}

func (all observers) NodeEnd(end NodeEnd) {
	for o := range implementing[NodeObserver](all) {
		o.NodeEnd(end)
	}
}

func (all observers) NodeChange(health NodeHealth) {
	for o := range implementing[NodeObserver](all) {
		o.NodeChange(health)
	}
}

// implementing yields those that implement T.
func implementing[T Observer](all observers) func(yield func(T) bool) {
	return func(yield func(T) bool) {
		for _, o := range all {
			if o, ok := o.(T); ok && !yield(o) {
				return
			}
		}
	}
}
