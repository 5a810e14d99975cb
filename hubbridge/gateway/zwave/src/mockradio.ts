import { CommandClasses, TransmitStatus, dskToString, nwiHomeIdFromDSK } from "@zwave-js/core";
import { FunctionType, Message, MessageType } from "@zwave-js/serial";
import {
  AddNodeStatus, AddNodeToNetworkRequest, AddNodeToNetworkRequestStatusReport, AddNodeType, ApplicationUpdateTypes, RemoveFailedNodeRequest,
  RemoveFailedNodeStatus, RemoveNodeFromNetworkRequest, RemoveNodeFromNetworkRequestStatusReport, RemoveNodeStatus, RemoveNodeType,
  RequestNodeInfoRequest, SendDataBridgeRequest, SendDataBridgeRequestTransmitReport, SendDataBridgeResponse,
} from "@zwave-js/serial/serialapi";
import { Bytes } from "@zwave-js/shared";
import type { MockController, MockControllerBehavior, MockNode, MockNodeOptions } from "@zwave-js/testing";

type Options = Omit<MockNodeOptions, "controller"> & { setup: (node: MockNode) => void };

const SENDING = "communicationState"; // of the mock controller: 0 is idle
const BUSY = 15_000; // ms

/**
 * MockRadio is what a stick does and Z-Wave JS's mock controller does not: devices join whenever a
 * window is open, also by SmartStart, leave, and are removed after they have failed.
 */
export class MockRadio implements MockControllerBehavior {
  private adding = false;
  private removing: number | undefined; // the callback ID of the removal window
  readonly unplugged = new Set<number>();

  /** One device waits to join. */
  constructor(private readonly device: Options) {}

  async onHostMessage(controller: MockController, message: Message): Promise<boolean> {
    if (message instanceof SendDataBridgeRequest || message instanceof RequestNodeInfoRequest) await this.idle(controller);
    if (message instanceof AddNodeToNetworkRequest) return this.add(controller, message);
    if (message instanceof RemoveNodeFromNetworkRequest) {
      this.removing = message.removeNodeType === RemoveNodeType.Stop ? undefined : message.callbackId;
    }
    if (message instanceof RemoveFailedNodeRequest) {
      const { failedNodeId, callbackId = 0 } = message, failed = this.unplugged.has(failedNodeId);
      const send = async (type: MessageType, ...bytes: number[]): Promise<void> =>
        controller.sendMessageToHost(new Message({ type, functionType: FunctionType.RemoveFailedNode, payload: Bytes.from(bytes) }));
      if (failed) this.leaves(controller, failedNodeId);
      await send(MessageType.Response, 0); // it has begun
      await send(MessageType.Request, callbackId, failed ? RemoveFailedNodeStatus.NodeRemoved : RemoveFailedNodeStatus.NodeOK);
      return true;
    }
    return message instanceof SendDataBridgeRequest && this.unanswered(controller, message);
  }

  /** Waits until what was sent before has been answered: the mock controller rejects what comes sooner. In the end it is given up. */
  private async idle({ state }: MockController): Promise<void> {
    for (const end = Date.now() + BUSY; (state.get(SENDING) ?? 0) !== 0 && Date.now() < end;) await new Promise((done) => setTimeout(done, 10));
    state.set(SENDING, 0);
  }

  /** Answers for a device that has left, or that has no keys for what it is sent. */
  private async unanswered(controller: MockController, message: SendDataBridgeRequest): Promise<boolean> {
    const node = controller.nodes.get(message.getNodeId() ?? 0), { callbackId = 0 } = message;
    const secure = message.serializedCC?.[0] === CommandClasses["Security 2"];
    if (node && (!secure || node.securityManagers.securityManager2)) return false;
    const transmitStatus = node ? TransmitStatus.OK : TransmitStatus.NoAck;
    await controller.sendMessageToHost(new SendDataBridgeResponse({ wasSent: true }));
    if (callbackId) await controller.sendMessageToHost(new SendDataBridgeRequestTransmitReport({ callbackId, transmitStatus }));
    return true;
  }

  private leaves(controller: MockController, id: number): void {
    const node = controller.nodes.get(id);
    if (node) controller.removeNode(node);
  }

  private async add(controller: MockController, { addNodeType, callbackId }: AddNodeToNetworkRequest): Promise<boolean> {
    if (addNodeType === AddNodeType.SmartStartListen) return true;
    const wasAdding = this.adding, joined = controller.nodes.has(this.device.id);
    this.adding = addNodeType !== AddNodeType.Stop;
    if (this.adding && !joined) controller.nodePendingInclusion = this.device;
    if (this.adding || wasAdding) return false;
    if (callbackId) { // to stop what has stopped already must not begin it
      await controller.sendMessageToHost(new AddNodeToNetworkRequestStatusReport({ callbackId, status: AddNodeStatus.Done, nodeId: 0 }));
    }
    return true;
  }

  /** Somebody presses a device's button: it leaves in a removal window. */
  async button(controller: MockController, nodeId: number): Promise<void> {
    const { removing: callbackId } = this;
    if (callbackId === undefined || !controller.nodes.has(nodeId)) throw new Error("no removal window is open, or the device has left");
    this.leaves(controller, nodeId);
    for (const status of [RemoveNodeStatus.NodeFound, RemoveNodeStatus.RemovingSlave, RemoveNodeStatus.Done] as const) {
      const report = status === RemoveNodeStatus.NodeFound ? { callbackId, status } : { callbackId, status, statusContext: { nodeId }, nodeId };
      await controller.sendMessageToHost(new RemoveNodeFromNetworkRequestStatusReport(report as never));
    }
  }

  /** The device that waits gets power, and asks to join by SmartStart. */
  async power(controller: MockController, publicKey: Uint8Array<ArrayBuffer>): Promise<void> {
    const { basicDeviceClass = 4, genericDeviceClass = 0, specificDeviceClass = 0 } = this.device.capabilities ?? {};
    const bytes = [
      ApplicationUpdateTypes.SmartStart_HomeId_Received, 0, 0, ...nwiHomeIdFromDSK(publicKey.subarray(0, 16)),
      1, basicDeviceClass, genericDeviceClass, specificDeviceClass, CommandClasses["Security 2"],
    ];
    await controller.sendMessageToHost(new Message({
      type: MessageType.Request, functionType: FunctionType.ApplicationUpdateRequest, payload: Bytes.from(bytes),
    }));
  }
}

/** Returns a device's key as it is printed on it: the specification of S2 says which bytes. */
export function printed(publicKey: Uint8Array<ArrayBuffer>): string {
  return dskToString(publicKey.subarray(0, 16));
}
