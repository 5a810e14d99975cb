package portal

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"hubcloud/domain"
)

const (
	// keptSearches is how many searches outcomeCache keeps, and keptValue the longest value in bytes.
	keptSearches = 10_000
	keptValue    = 200
)

// commandSearch searches the log of a hub for the outcome of a command: only what follows the record
// of the command in the log counts.
type commandSearch struct {
	outcomeSearch
	command domain.CommandRecord
	// seen is how many events the search has taken. read reports that it has taken all that follow
	// the command, or outcomeEvents. over reports that no later event changes the outcome.
	seen       int
	read, over bool
}

func (s *commandSearch) take(event domain.EncodedEvent) {
	if s.seen++; s.seen <= outcomeEvents {
		s.outcomeSearch.take(event)
	}
}

// result returns the outcome, once the log was read.
func (s *commandSearch) result(now time.Time) commandOutcome {
	switch {
	case s.outcome != outcomePending:
		return s.outcome
	case s.over:
		return outcomeUnknown
	case now.Sub(s.command.At) < outcomeTime:
		return outcomePending
	}
	return outcomeNone
}

// searchLog reads the log of a hub for the searches of several commands: each part of it once. The
// searches whose events cannot be read stay unread.
func (p *Portal) searchLog(ctx context.Context, hub domain.HubID, searches []*commandSearch) {
	slices.SortStableFunc(searches, func(a, b *commandSearch) int {
		return cmp.Compare(a.command.Seq, b.command.Seq)
	})
	begun, after := 0, "" // the first searches have begun, and read on after the cursor
	for len(searches) > 0 && ctx.Err() == nil {
		if begun == 0 {
			begun, after = 1, searches[0].command.Position
		}
		page, err := p.Events.Page(ctx, hub, after, outcomePage)
		if err != nil {
			searches, begun = searches[begun:], 0
			continue
		}
		for _, event := range page.Events {
			for begun < len(searches) && searches[begun].command.Seq < event.Seq {
				begun++
			}
			for _, search := range searches[:begun] {
				search.take(event)
			}
		}
		if after = page.Next; !page.HasMore {
			begun = len(searches) // no event follows the other commands
		}
		var unread []*commandSearch
		for _, search := range searches[:begun] {
			search.over = search.final || search.seen >= outcomeEvents
			if search.read = search.over || !page.HasMore; !search.read {
				unread = append(unread, search)
			}
			p.outcomes.keep(search)
		}
		searches, begun = append(unread, searches[begun:]...), len(unread)
	}
}

// outcomeCache keeps searches that are over, by the ids of their commands: pages and cards show the
// same commands again and again.
type outcomeCache struct {
	mu   sync.Mutex
	over map[string]*commandSearch
}

// search returns the search of a command, which is over or new.
func (c *outcomeCache) search(command domain.CommandRecord) *commandSearch {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.over[command.ID]; ok {
		return known
	}
	return &commandSearch{command: command, outcomeSearch: newOutcomeSearch(
		command.DeviceID, command.Key, command.Endpoint, command.Value,
	)}
}

// keep keeps a search if it is over. A full cache begins anew.
func (c *outcomeCache) keep(search *commandSearch) {
	if !search.over || len(search.reported)+len(search.wanted) > keptValue {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over == nil || len(c.over) >= keptSearches {
		c.over = map[string]*commandSearch{}
	}
	c.over[search.command.ID] = search
}
