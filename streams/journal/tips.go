package journal

import (
	"iter"

	"hubcloud/domain"
)

// Tips returns the ends of all logs that the index knew when Tips was called, in no order.
func (x *Index) Tips() iter.Seq2[domain.HubID, Tip] {
	x.mu.RLock()
	hubs := make([]domain.HubID, 0, len(x.tips))
	for hub := range x.tips {
		hubs = append(hubs, hub)
	}
	x.mu.RUnlock()
	return func(yield func(domain.HubID, Tip) bool) {
		for _, hub := range hubs {
			// Skip may have dropped the tip since.
			if tip, ok := x.Tip(hub); ok && !yield(hub, tip) {
				return
			}
		}
	}
}
