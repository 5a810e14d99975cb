package domain

import (
	"maps"
	"slices"
)

// EventForms returns every form in which events are stored.
func EventForms() []eventForm { return slices.Collect(maps.Keys(facts)) }
