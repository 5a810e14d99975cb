package commands_test

import (
	"fmt"
	"testing"
)

// BenchmarkSend measures a command to a hub that answers at once: one with a new idempotency key
// and one that is answered from memory.
func BenchmarkSend(b *testing.B) {
	cloud := newTestCloud(b)
	p := cloud.replica("r1")
	for _, repeat := range []bool{false, true} {
		b.Run(fmt.Sprintf("repeat=%t", repeat), func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if n++; repeat {
					n = 1
				}
				if _, err := p.send(cloud.command(fmt.Sprint("k", n))); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
