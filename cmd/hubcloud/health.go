package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/httpapi"
	"hubcloud/projections"
	"hubcloud/streams/directory"
)

const (
	// unwellAfter is how long a part must have been unwell before the process says that it is not
	// ready. A connection that is made again, or a shard that passes to another replica, takes
	// less, and whoever hands on requests by what this says must not take a replica out for it.
	unwellAfter = 3 * time.Second
	// unwellPause is when what was unwell is looked at afresh: nobody has asked for so long that
	// nothing is known of the time between.
	unwellPause = time.Minute
	// askTimeout bounds how long a part may take to say how it is.
	askTimeout = 2 * time.Second
)

// unwell says what is wrong with a part. Anybody can read detail and action; cause is for the log.
type unwell struct {
	detail, action string
	cause          error
	// lasting says that it does not pass by itself: there is no need to wait and see.
	lasting bool
	// serves says that the process answers all the same, and should be asked.
	serves bool
}

// Error gives the detail.
func (u *unwell) Error() string { return u.detail }

// part is one part of the service, and how it is asked how it does. The text is for when it does
// well.
type part struct {
	name string
	ask  func(ctx context.Context) (string, *unwell)
}

// health tells how the parts of the service are doing. Its methods may be called by several
// goroutines at once.
type health struct {
	parts []part
	log   *slog.Logger
	// started is set once the start is over and endpoints.json is there. Before, nothing counts as
	// ready.
	started atomic.Bool

	mu    sync.Mutex
	known map[string]*condition
}

// condition is what was seen of a part.
type condition struct {
	// since is when it was first seen unwell, zero while it is well; asked is when it was looked at
	// last.
	since, asked time.Time
	// told says that it was told to be unwell.
	told bool
}

// newHealth makes the health of a service, whose parts are looked up when it is asked.
func newHealth(s *service) *health {
	h := &health{
		log:   s.log,
		known: map[string]*condition{},
		parts: []part{
			{"broker", s.brokerHealth},
			{"read_models", s.readModelsHealth},
			{"access", s.accessHealth},
		},
	}
	if s.flags.NATSURL == "" {
		h.parts = append(h.parts, part{"disk", s.diskHealth})
	}
	if s.flags.has(roleBridge) {
		h.parts = append(h.parts, part{"bridge", s.bridgeHealth})
	}
	return h
}

// components tells how each part is, for /readyz.
func (h *health) components(ctx context.Context) []httpapi.Component {
	// Who asks and leaves must not make a part look unwell.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	if !h.started.Load() {
		return []httpapi.Component{
			{
				Name:   "start",
				Detail: "starting",
				Action: "wait: endpoints.json is written when the start is over",
			},
		}
	}
	all := make([]httpapi.Component, 0, len(h.parts))
	for _, p := range h.parts {
		detail, problem := p.ask(ctx)
		if problem == nil {
			h.settle(p.name, nil, time.Now())
			all = append(all, httpapi.Component{Name: p.name, OK: true, Detail: detail})
			continue
		}
		ok := h.settle(p.name, problem, time.Now())
		all = append(
			all,
			httpapi.Component{
				Name:     p.name,
				OK:       ok,
				Degraded: !ok && problem.serves,
				Detail:   problem.detail,
				Action:   problem.action,
			},
		)
	}
	return all
}

// settle says whether a part counts as well, and tells the log when that changes.
func (h *health) settle(name string, problem *unwell, now time.Time) (ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.known[name]
	if c == nil {
		c = &condition{}
		h.known[name] = c
	}
	fresh := now.Sub(c.asked) < unwellPause
	c.asked = now
	if problem == nil {
		if c.told {
			h.log.Info(
				"a part of the service is well again", "component", name,
				"unwell_ms", now.Sub(c.since).Milliseconds(),
			)
		}
		c.since, c.told = time.Time{}, false
		return true
	}
	if c.since.IsZero() || !fresh && !c.told {
		c.since = now
	}
	if !problem.lasting && now.Sub(c.since) < unwellAfter {
		return true
	}
	if !c.told {
		c.told = true
		attrs := []any{
			"ready",
			problem.serves,
			"component",
			name,
			"detail",
			problem.detail,
			"action",
			problem.action,
		}
		if problem.cause != nil {
			attrs = append(attrs, "error", problem.cause)
		}
		h.log.Warn("a part of the service is not well", attrs...)
	}
	return false
}

// brokerHealth says which connections to the broker are down.
func (s *service) brokerHealth(context.Context) (string, *unwell) {
	down := 0
	all := append([]*nats.Conn{s.conns.Sys, s.conns.Cloud}, s.conns.Shards...)
	for _, conn := range all {
		if !conn.IsConnected() {
			down++
		}
	}
	if down == 0 {
		return fmt.Sprintf("%d connections", len(all)), nil
	}
	return "", &unwell{
		detail: fmt.Sprintf("%d of %d connections to the broker are down", down, len(all)),
		action: "they are made again by themselves once the broker is there: see that it runs, " +
			"and that --nats-url leads to it",
	}
}

// diskHealth reports whether the broker in this process can store, and whether it may: hub events,
// changes and commands are rejected while less than the reserve is free. Reading goes on, so the
// process is not taken out of service for it.
func (s *service) diskHealth(context.Context) (string, *unwell) {
	space := s.space.State()
	if cause, since := s.broker.StoreFailed(); !since.IsZero() {
		return "", &unwell{
			detail: "the broker cannot write to its disk: hub events, changes and commands are rejected",
			cause:  errors.New(cause), lasting: true, serves: true,
			action: "make room on the disk of --data-dir, or mend it: the broker recovers by itself within seconds",
		}
	}
	if space.Low && space.NoFiles {
		return "", &unwell{
			detail: fmt.Sprintf(
				"%d files (inodes) are free and %d are the reserve: hub events, changes and commands are rejected",
				space.FreeFiles, space.FilesReserve,
			),
			action: "remove files from the disk of --data-dir, not those of the service, or " +
				"make it one with more inodes (df -i): the service goes on by itself",
			lasting: true, serves: true,
		}
	}
	if space.Low {
		return "", &unwell{
			detail: fmt.Sprintf(
				"%d MiB are free and %d MiB are the reserve: hub events, changes and commands are rejected",
				space.Free>>20, space.Reserve>>20,
			),
			action:  "make room on the disk of --data-dir: the service goes on by itself",
			lasting: true, serves: true,
		}
	}
	return fmt.Sprintf(
		"%d MiB are free beyond the reserve of %d MiB", (space.Free-space.Reserve)>>20,
		space.Reserve>>20,
	), nil
}

// readModelsHealth says whether the database answers and holds everything, and what stops it from
// being kept up to date.
func (s *service) readModelsHealth(ctx context.Context) (string, *unwell) {
	err := s.store.Ready(ctx)
	var stopped *projections.StoppedError
	switch {
	case errors.Is(err, projections.ErrBuilding):
		return "", &unwell{
			detail:  err.Error(),
			cause:   err,
			lasting: true,
			action:  "wait: they are built from the streams; hubcloud projections status says how far",
		}
	case errors.As(err, &stopped):
		return "", &unwell{detail: stopped.Error(), cause: err, lasting: true, serves: true,
			action: "what is read stays as of that event: run a program that understands it, or " +
				"step over it (hubcloud projections skip --help)"}
	case errors.Is(err, directory.ErrStandingStill):
		return "", &unwell{detail: err.Error(), cause: err, lasting: true, serves: true,
			action: "what is read stays as it is until the projection is resumed (hubcloud projections resume)"}
	case err != nil:
		return "", &unwell{detail: "the database does not answer", cause: err,
			action: "see that Postgres runs and takes connections; the log has the error"}
	}
	return "complete", nil
}

// accessHealth says whether this replica knows which keys are in force and whose hubs are.
func (s *service) accessHealth(context.Context) (string, *unwell) {
	if err := s.access.Ready(); err != nil {
		return "", &unwell{
			detail:  err.Error(),
			cause:   err,
			lasting: true,
			action:  "wait: they are read from the directory",
		}
	}
	if err := s.freshness.Err(); err != nil {
		return "", &unwell{
			detail:  "cut off from the directory: requests with a key are answered 503",
			cause:   err,
			lasting: true,
			action: "it goes on by itself once the broker is reached: see that a majority of " +
				"its servers run, and that --nats-url leads to them",
		}
	}
	return fmt.Sprintf("up to event %d of the directory", s.access.Applied()), nil
}

// bridgeHealth says whether this replica looks after the hubs that it should.
func (s *service) bridgeHealth(context.Context) (string, *unwell) {
	if err := s.bridge.Ready(); err != nil {
		return "", &unwell{detail: err.Error(), cause: err,
			action: "hubs of those shards are heard once a replica has their lease: see that the " +
				"broker stores (hubcloud doctor)"}
	}
	return "every shard of its share is looked after", nil
}
