package hub

import (
	"bufio"
	"errors"
	"fmt"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// maxPacketBytes is the most that the service's broker accepts.
const maxPacketBytes = 2 << 20

// ErrPacketSize reports a packet of more than 2 MiB.
var ErrPacketSize = errors.New("the packet has more than 2 MiB")

// ReadPacket reads a packet of at most maxPacketBytes. The library would allocate what the header
// of a packet announces, up to 256 MiB.
func ReadPacket(reader *bufio.Reader) (p packets.ControlPacket, err error) {
	defer func() {
		// The library's decoders index into packets that are too short.
		if failure := recover(); failure != nil {
			err = fmt.Errorf("malformed packet: %v", failure)
		}
	}()
	length := 0
	for i := 1; ; i++ { // the remaining length: MQTT 3.1.1 section 2.2.3
		header, err := reader.Peek(i + 1)
		if err != nil {
			return nil, err
		}
		length |= int(header[i]&0x7f) << (7 * (i - 1))
		if header[i]&0x80 == 0 {
			break
		}
		if i == 4 {
			return nil, errors.New("malformed packet: its length has more than 4 bytes")
		}
	}
	if length > maxPacketBytes {
		return nil, ErrPacketSize
	}
	return packets.ReadPacket(reader)
}
