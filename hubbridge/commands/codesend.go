package commands

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	// codeWorkers is how many hubs of a part are sent codes at once.
	codeWorkers = 8
	// codeTick is the longest time between two looks at what is due.
	codeTick = 500 * time.Millisecond
	// orphanEvery is how often codes are looked for that the directory does not know, of hubs that
	// are away.
	orphanEvery = 10 * time.Minute
	// helloGrace is how long after it has connected a hub has said hello.
	helloGrace = 10 * time.Second
	// codePause is the pause after a failure. It doubles up to maxCodePause.
	codePause    = 2 * time.Second
	maxCodePause = 5 * time.Minute
	// hubErrors is how often a hub may fail without a reason before a code has failed.
	hubErrors = 3
	// codeMarker is how long the bucket keeps the mark of a code that was removed.
	codeMarker = time.Minute
)

// codeHub is a hub that is being sent codes, or does not answer.
type codeHub struct {
	busy bool
	// next is when the hub is called again after it has not answered, failures times.
	next     time.Time
	failures int
}

func (h *codeHub) fail(now time.Time) {
	h.next = now.Add(min(codePause<<min(h.failures, 10), maxCodePause))
	h.failures++
}

// Serve sends what waits for the hubs of a part, until ctx ends. held reports whether the lease of
// the part is still held.
func (c *Codes) Serve(ctx context.Context, part int, held func() bool) error {
	var hubs errgroup.Group
	hubs.SetLimit(codeWorkers)
	defer hubs.Wait() // workers return no error
	ticker := time.NewTicker(codeTick)
	defer ticker.Stop()
	for {
		due, changed := c.due(part)
		for hub, versions := range due {
			hubs.Go(func() error {
				answers := true
				for _, version := range versions {
					if answers = held() && c.send(ctx, hub, version); !answers {
						break
					}
				}
				c.done(hub, answers)
				return nil
			})
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-ticker.C:
		}
	}
}

// due returns the versions that are due, by hub, and marks the hubs as busy. The oldest are first, but
// after those that have failed less often: a lock that is away delays no other lock of its hub.
func (c *Codes) due(part int) (map[domain.HubID][]string, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.cfg.Now()
	byHub := map[domain.HubID][]string{}
	for version, w := range c.waiting {
		p, _ := c.cfg.Presence(w.HubID)
		state := c.hubs[w.HubID]
		called := p.Online && !w.next.After(now) && (state == nil || !state.next.After(now))
		if streams.PartOf(string(w.HubID), c.cfg.Parts) == part && (state == nil || !state.busy) &&
			(called || !w.checked.After(now)) {
			byHub[w.HubID] = append(byHub[w.HubID], version)
		}
	}
	for hub, versions := range byHub {
		slices.SortFunc(versions, func(a, b string) int {
			first, second := c.waiting[a], c.waiting[b]
			return cmp.Or(
				cmp.Compare(first.failures, second.failures), first.At.Compare(second.At),
			)
		})
		if c.hubs[hub] == nil {
			c.hubs[hub] = &codeHub{}
		}
		c.hubs[hub].busy = true
	}
	return byHub, c.changed
}

// done notes that a hub was sent what was due, and whether it answers.
func (c *Codes) done(hub domain.HubID, answers bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answers {
		delete(c.hubs, hub)
		return
	}
	c.hubs[hub].busy = false
	c.hubs[hub].fail(c.cfg.Now())
}

// send sends what waits under a version, reports what became of it, and removes it. It returns false
// if the hub does not answer.
func (c *Codes) send(ctx context.Context, hub domain.HubID, version string) bool {
	state, _, err := c.cfg.Directory.Hub(ctx, hub)
	if err != nil {
		return false
	}
	known, ok := state.Credential(version)
	now := c.cfg.Now()
	c.mu.Lock()
	w := c.waiting[version]
	if w == nil {
		c.mu.Unlock()
		return true
	}
	old := now.Sub(w.At) > orphanAge
	w.next, w.checked = now.Add(codeTick), now.Add(orphanEvery)
	if !ok { // not stored yet, perhaps
		w.checked = w.At.Add(orphanAge + codeTick)
	}
	c.mu.Unlock()
	switch {
	case !ok && !old:
		return true
	case !ok, known.State == domain.CredentialActive, known.State == domain.CredentialFailed:
		c.remove(ctx, version)
		return true
	}
	return c.deliver(ctx, hub, known, w)
}

// deliver calls the hub and deals with its answer. It returns false if there is none.
func (c *Codes) deliver(
	ctx context.Context, hub domain.HubID, known domain.Credential, w *waitingCode,
) bool {
	p, _ := c.cfg.Presence(hub)
	if !p.Online || !p.Credentials && c.cfg.Now().Sub(p.Since) < helloGrace {
		return true // it is due again soon
	}
	revoked := known.State == domain.CredentialRevoked
	reason, message := domain.CredentialUnsupported, "the hub does not support door codes"
	if p.Credentials {
		reason, message = "", ""
		if err := c.call(ctx, hub, known, w); err != nil {
			reason, message = reasonOf(err)
		}
	}
	switch domain.Code(reason) {
	case domain.CodeHubOffline, domain.CodeHubTimeout, domain.CodeHubUnavailable,
		domain.CodeRateLimited, domain.CodeInternal, domain.CodeServiceUnavailable:
		c.retry(w)
		return false
	case domain.CodeHubError:
		if c.retry(w) < hubErrors {
			return true
		}
	case domain.CodeNotFound, domain.CredentialUnsupported:
		if revoked && (reason != domain.CredentialUnsupported || !known.Held) {
			reason, message = "", "" // it is gone, or never was there
		}
	}
	err := c.cfg.Directory.ReportCredential(ctx, hub, known.Version, reason, message)
	c.cfg.Logger.Info(
		"door code sent", "hub_id", hub, "device_id", known.DeviceID, "slot", known.Slot,
		"revoked", revoked, "reason", reason, "error", err,
	)
	if err != nil || revoked && reason != "" { // a removal is tried until it succeeds
		c.retry(w)
	} else {
		c.remove(ctx, known.Version)
	}
	return true
}

// reasonOf returns the code of an error and its message for people.
func reasonOf(err error) (reason, message string) {
	var known *domain.Error
	if errors.As(err, &known) {
		message = known.Message
	}
	return string(domain.CodeOf(err)), message
}

// call calls the method for a code.
func (c *Codes) call(
	ctx context.Context, hub domain.HubID, known domain.Credential, w *waitingCode,
) error {
	if known.State == domain.CredentialRevoked {
		return c.cfg.Locks.RemoveCredential(ctx, hub, known.DeviceID, known.Slot)
	}
	params := protocol.CredentialParams{
		DeviceID: known.DeviceID, Slot: known.Slot, Label: known.Label, TimeZone: known.TimeZone,
		ValidFrom: formatBound(known.ValidFrom), ValidUntil: formatBound(known.ValidUntil),
	}
	for _, t := range known.Schedule {
		params.Schedule = append(params.Schedule, protocol.WeeklyTime(t))
	}
	if len(w.Sealed) > 0 {
		code, err := c.cfg.Vault.Open(known.Version, w.Sealed)
		if err != nil { // the service has another authority
			return domain.Errorf(
				domain.CodeInvalidRequest, "the code cannot be read any more: set it again",
			)
		}
		params.Code = string(code)
	}
	return c.cfg.Locks.SetCredential(ctx, hub, params)
}

func formatBound(t *time.Time) *string {
	if t == nil {
		return nil
	}
	text := domain.FormatTime(*t)
	return &text
}

// retry notes that something must be sent again, after a pause that grows, and returns how often it
// has failed.
func (c *Codes) retry(w *waitingCode) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.next = c.cfg.Now().Add(min(codePause<<min(w.failures, 10), maxCodePause))
	w.failures++
	return w.failures
}

// remove removes what waits under a version for good. If it fails, it is tried again.
func (c *Codes) remove(ctx context.Context, version string) {
	entry, err := c.bucket().Get(ctx, version)
	if err == nil && entry.Exists() {
		_, err = c.bucket().CompareAndSet(
			ctx, version, nil, jsapi.PurgeHeader(codeMarker), entry.Revision,
		)
	}
	if err != nil {
		c.cfg.Logger.Warn("door code not removed from the bucket", "version", version, "error", err)
	}
}
