package device

import (
	"slices"
	"time"
)

// Advance carries the device on to now and returns what is to be told, in order, and whether
// anything at all has changed (a command given up changes a state and tells nothing).
func (d *Device) Advance(now time.Time, s Surroundings) (told []Observation, changed bool) {
	reachable := d.Available && s.Radio
	for {
		i := d.nextAction()
		if i < 0 || now.Before(d.actionDue(d.actions[i], s)) {
			break
		}
		a := d.actions[i]
		d.actions = slices.Delete(d.actions, i, i+1)
		changed = true
		if !reachable {
			c := d.Channel(a.Ref)
			c.ChannelState = c.Abandoned()
			continue
		}
		told = append(told, d.take(d.settle(a), now)...)
	}
	if d.sampled(s) && !now.Before(d.nextSample) {
		// Spread, so that the devices of many hubs do not report in step: the first time anywhere
		// within the interval, then by a fifth.
		wait := d.rnd.Float64()
		if !d.nextSample.IsZero() {
			wait = 0.8 + 0.4*wait
			readings := d.kind.sample(d)
			if reachable {
				told = append(told, d.take(readings, now)...)
			}
		}
		d.nextSample = now.Add(time.Duration(wait * float64(d.kind.every)))
	}
	return told, changed || len(told) > 0
}

// Due is when Advance next has something to do; zero: never, unless something else happens.
func (d *Device) Due(s Surroundings) time.Time {
	var due time.Time
	if d.sampled(s) {
		if due = d.nextSample; due.IsZero() {
			due = time.Unix(0, 0) // at once: the first Advance sets the rhythm
		}
	}
	for _, a := range d.actions {
		if t := d.actionDue(a, s); due.IsZero() || t.Before(due) {
			due = t
		}
	}
	return due
}

func (d *Device) sampled(s Surroundings) bool { return d.kind.sample != nil && !s.Quiet }

// actionDue is when something comes of a: the device is done with it, or the hub gives up since it
// cannot hear of it.
func (d *Device) actionDue(a action, s Surroundings) time.Time {
	if d.Available && s.Radio {
		return a.Due
	}
	return a.Since.Add(s.giveUp())
}

func (d *Device) nextAction() int {
	next := -1
	for i, a := range d.actions {
		if next < 0 || a.Due.Before(d.actions[next].Due) {
			next = i
		}
	}
	return next
}

// settle carries out a and gives the readings that follow.
func (d *Device) settle(a action) []reading {
	if on, ok := a.Value.(bool); ok && d.Jammed {
		return []reading{
			{a.Ref, !on},
			{Ref{Key: "alarm"}, Alarm{Type: a.Key, Event: "jammed", Active: true}},
		}
	}
	v := a.Value
	if c, ok := v.(Color); ok && c.WarmWhite == NotAsked {
		c.WarmWhite = 0
		if last, ok := d.Channel(a.Ref).Value.(Color); ok {
			c.WarmWhite = last.WarmWhite
		}
		v = c
	}
	own := reading{a.Ref, v}
	if d.kind.settle == nil {
		return []reading{own}
	}
	return append([]reading{own}, d.kind.settle(d, own)...)
}

// take lays readings into the channels. A reading of a channel that the device does not have is
// passed over.
func (d *Device) take(readings []reading, now time.Time) []Observation {
	var told []Observation
	for _, r := range readings {
		c := d.Channel(r.Ref)
		if c == nil {
			continue
		}
		next, news := c.Reported(r.Value, now)
		c.ChannelState = next
		if news || keys[r.Key].everyReport {
			told = append(told, Observation(r))
		}
	}
	return told
}
