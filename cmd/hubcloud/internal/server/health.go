package server

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"hubcloud/httpapi"
)

const (
	// unhealthyAfter is how long a problem must last before the replica reports that it is not
	// ready. Reconnecting to the broker, or moving a shard to another replica, takes less: a load
	// balancer must not take a replica out for it.
	unhealthyAfter = 3 * time.Second
	// staleAfter is the age from which the last check of a component is ignored: nothing is known
	// of the time since then.
	staleAfter = time.Minute
	// checkTimeout bounds the checks of one request. Load balancers wait two seconds for an answer,
	// also while the database hangs.
	checkTimeout = time.Second
)

// problem is what is wrong with a component.
type problem struct {
	// detail and action are public. cause goes to the log only.
	detail, action string
	cause          error
	// lasting means that the problem does not pass by itself, so that it counts at once.
	lasting bool
	// serves means that the replica still answers requests and should stay in service.
	serves bool
}

// component is a part of the server that can be unhealthy.
type component struct {
	name string
	// check returns a text on a healthy component, or the problem.
	check func(ctx context.Context) (string, *problem)
}

// health answers /readyz. Its methods may be called concurrently.
type health struct {
	components []component
	logger     *slog.Logger
	// started is set once the start is complete. Until then the replica is not ready.
	started atomic.Bool

	mu         sync.Mutex
	conditions map[string]*condition
}

// condition is what earlier checks found out about a component.
type condition struct {
	// unhealthySince is the time of the first check that found the problem, zero while the
	// component is healthy.
	unhealthySince time.Time
	// checkedAt is the time of the last check.
	checkedAt time.Time
	// reported is set once the problem has counted, and was logged.
	reported bool
}

// newHealth returns the health of a replica without components, which its layers add.
func newHealth(logger *slog.Logger) *health {
	return &health{logger: logger, conditions: map[string]*condition{}}
}

// add adds a component. It must not be called once the replica has started.
func (h *health) add(name string, check func(ctx context.Context) (string, *problem)) {
	h.components = append(h.components, component{name, check})
}

// check checks every component.
func (h *health) check(ctx context.Context) []httpapi.Component {
	// A client that gives up must not make a component look unhealthy.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
	defer cancel()
	if !h.started.Load() {
		return []httpapi.Component{{
			Name: "start", Detail: "starting",
			Action: "wait: endpoints.json is written when the start is complete",
		}}
	}
	all := make([]httpapi.Component, 0, len(h.components))
	for _, c := range h.components {
		detail, problem := c.check(ctx)
		result := httpapi.Component{Name: c.name, Detail: detail}
		result.OK = h.record(c.name, problem, time.Now())
		if problem != nil {
			result.Detail, result.Action = problem.detail, problem.action
			result.Degraded = !result.OK && problem.serves
		}
		all = append(all, result)
	}
	return all
}

// record stores the result of a check and reports whether the component counts as healthy. It logs
// when that changes.
func (h *health) record(name string, problem *problem, now time.Time) (healthy bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.conditions[name]
	if c == nil {
		c = &condition{}
		h.conditions[name] = c
	}
	fresh := now.Sub(c.checkedAt) < staleAfter
	c.checkedAt = now
	if problem == nil {
		if c.reported {
			h.logger.Info(
				"component healthy again", "component", name,
				"unhealthy_ms", now.Sub(c.unhealthySince).Milliseconds(),
			)
		}
		c.unhealthySince, c.reported = time.Time{}, false
		return true
	}
	if c.unhealthySince.IsZero() || !fresh && !c.reported {
		c.unhealthySince = now
	}
	if !problem.lasting && now.Sub(c.unhealthySince) < unhealthyAfter {
		return true
	}
	if !c.reported {
		c.reported = true
		attrs := []any{
			"ready", problem.serves, "component", name,
			"detail", problem.detail, "action", problem.action,
		}
		if problem.cause != nil {
			attrs = append(attrs, "error", problem.cause)
		}
		h.logger.Warn("component unhealthy", attrs...)
	}
	return false
}
