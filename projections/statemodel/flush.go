package statemodel

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections/database"
)

// maxPause is the longest pause after a flush that took longer than FlushInterval.
const maxPause = time.Second

// runFlushes writes what has changed every FlushInterval, until an error. A flush that takes long is
// followed by as long a pause, so that the database has time for others: what changes meanwhile
// costs no more than one change.
func (p *projection) runFlushes(ctx context.Context, conn *pgx.Conn) error {
	due := time.NewTimer(p.cfg.FlushInterval)
	defer due.Stop()
	swept := time.Now()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-due.C:
		}
		begun := time.Now()
		if err := p.flush(ctx, conn); err != nil {
			p.metrics.flushErrors.Inc()
			return err
		}
		took := time.Since(begun)
		due.Reset(max(p.cfg.FlushInterval-took, min(took, maxPause)))
		if err := p.ended(); err != nil {
			return err
		}
		// A copy is swept once it is in use.
		if !p.isCopy() && p.cfg.DirectoryHead != nil && time.Since(swept) >= p.cfg.SweepInterval {
			if err := p.sweep(ctx, conn); err != nil {
				return err
			}
			swept = time.Now()
		}
	}
}

// batch is what one flush writes.
type batch struct {
	rows     rows
	hubs     map[domain.HubID]*cachedHub
	from, to checkpoint
	lost     bool
	// complete means that the tables have everything that the journal had when the projection
	// began.
	complete bool
	oldest   time.Time
}

// flush writes what has changed since the last flush, with the checkpoint, in one transaction.
func (p *projection) flush(ctx context.Context, conn *pgx.Conn) error {
	b, err := p.take()
	if err != nil || b == nil {
		return err
	}
	begun := time.Now()
	writing, cancel := context.WithTimeout(ctx, database.CommitTimeout)
	defer cancel()
	err = pgx.BeginFunc(writing, conn, func(tx pgx.Tx) error { return p.write(writing, tx, b) })
	if err != nil {
		return fmt.Errorf("write last reported states: %w", err)
	}
	p.metrics.flushSeconds.Observe(time.Since(begun).Seconds())
	p.metrics.rows.Add(float64(b.rows.count()))
	behind := 0.0
	if !b.oldest.IsZero() {
		behind = max(0, time.Since(b.oldest).Seconds())
	}
	p.metrics.behind.WithLabelValues(p.label).Set(behind)

	p.mu.Lock()
	defer p.mu.Unlock()
	p.written, p.built = b.to, p.built || b.complete
	p.evict(b.hubs)
	return nil
}

// take returns what has changed since the last flush, or nil.
func (p *projection) take() (*batch, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure != nil {
		return nil, p.failure
	}
	complete := p.reached && !p.built
	if p.at == p.written && !complete && !p.lost {
		p.metrics.behind.WithLabelValues(p.label).Set(0)
		return nil, nil
	}
	b := &batch{
		hubs: p.dirty, from: p.written, to: p.at, lost: p.lost, complete: complete,
		oldest: p.oldest,
	}
	for id, hub := range p.dirty {
		b.rows.add(id, hub.state, hub.flushed)
		hub.flushed = hub.state.Seq
		count := 0
		for _, d := range hub.state.Devices {
			count += len(d.Channels)
		}
		p.channels += count - hub.channels
		hub.channels = count
	}
	p.dirty, p.lost, p.oldest = map[domain.HubID]*cachedHub{}, false, time.Time{}
	return b, nil
}

// write writes a batch.
func (p *projection) write(ctx context.Context, tx pgx.Tx, b *batch) error {
	// Commits need not wait for the disk: after a crash the projection goes on from the checkpoint
	// that the database has.
	if _, err := tx.Exec(ctx, "SET LOCAL synchronous_commit = off"); err != nil {
		return err
	}
	var term int64
	err := tx.QueryRow(ctx, p.sql("SELECT term FROM {schema}.leader FOR SHARE")).Scan(&term)
	if err != nil {
		return err
	}
	if term != p.leading {
		return errTakenOver
	}
	if b.lost {
		if _, err := tx.Exec(ctx, p.sql(lose), p.number); err != nil {
			return err
		}
	}
	type statement struct {
		text string
		rows int
		args []any
	}
	for _, s := range []statement{
		{deleteParts, len(b.rows.reshaped), []any{b.rows.reshaped}},
		{writeHubs, len(b.rows.hubs.ids), b.rows.hubs.args(p.number)},
		{writeDevices, len(b.rows.devices.hubs), b.rows.devices.args()},
		{writeChannels, len(b.rows.channels.hubs), b.rows.channels.args()},
	} {
		if s.rows == 0 {
			continue
		}
		if _, err := tx.Exec(ctx, p.sql(s.text), s.args...); err != nil {
			return err
		}
	}
	tag, err := tx.Exec(
		ctx, p.sql(advance), p.number, int64(b.from.position), int64(b.to.position),
		int64(b.to.term), b.to.time, b.complete,
	)
	if err == nil && tag.RowsAffected() != 1 {
		return fmt.Errorf("checkpoint of journal %d: is no longer %d", p.number, b.from.position)
	}
	return err
}

// evict removes states from memory while there are too many channels: those of hubs that neither
// have unwritten changes nor were written last. It must be called with p.mu held.
func (p *projection) evict(last map[domain.HubID]*cachedHub) {
	limit := max(1, p.cfg.MaxChannels/p.cfg.Journal.Number())
	for id, hub := range p.hubs {
		if p.channels <= limit {
			break
		}
		if p.dirty[id] == nil && last[id] == nil {
			p.remove(id, hub)
		}
	}
	p.metrics.hubs.WithLabelValues(p.label).Set(float64(len(p.hubs)))
	p.metrics.channels.WithLabelValues(p.label).Set(float64(p.channels))
}

// remove removes a state from memory. It must be called with p.mu held.
func (p *projection) remove(id domain.HubID, hub *cachedHub) {
	p.channels -= hub.channels
	delete(p.hubs, id)
}

// sweep deletes rows of hubs that were released, unless the directory's projection stands or is
// behind: then the rows of a hub that an organization has may look as if nobody had it.
func (p *projection) sweep(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, database.CommitTimeout)
	defer cancel()
	var projected int64
	err := conn.QueryRow(ctx, directoryCheckpoint).Scan(&projected)
	if err != nil {
		return fmt.Errorf("read the directory's checkpoint: %w", err)
	}
	head, err := p.cfg.DirectoryHead(ctx, uint64(projected))
	if err != nil || head != uint64(projected) {
		return nil // at the next time
	}
	found, err := conn.Query(ctx, p.sql(releasedHubs), p.number)
	if err != nil {
		return fmt.Errorf("find the states of released hubs: %w", err)
	}
	ids, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("find the states of released hubs: %w", err)
	}
	// No state is read or folded until the rows are deleted.
	p.mu.Lock()
	defer p.mu.Unlock()
	idle := ids[:0]
	for _, id := range ids {
		if p.dirty[domain.HubID(id)] != nil {
			continue
		}
		idle = append(idle, id)
		if hub := p.hubs[domain.HubID(id)]; hub != nil {
			p.remove(domain.HubID(id), hub)
		}
	}
	if len(idle) == 0 {
		return nil
	}
	_, err = conn.Exec(ctx, p.sql(deleteHubs), idle)
	if err == nil {
		p.logger.Info("states of released hubs deleted", "hubs", len(idle))
	}
	return err
}
