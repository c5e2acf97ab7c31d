/** An MQTT 5 broker on loopback that answers as the test requests. */
import type { Socket } from 'node:net';
import {
  generate,
  type IConnackPacket,
  type IConnectPacket,
  type IPublishPacket,
  type Packet,
  parser,
} from 'mqtt-packet';
import { startTcpServer } from '../../helpers/tcp-server.ts';

interface BrokerOptions {
  /** Answer to each CONNECT; by default, it is accepted. */
  connack?: Omit<IConnackPacket, 'cmd' | 'sessionPresent'>;
  /** Answer to each message: a reason code, a disconnection with or without a reason code, or none. By default 0. */
  answer?: (packet: IPublishPacket) => number | { disconnect: number } | 'none' | 'close';
}

const protocolVersion = 5;

export async function startBroker(options: BrokerOptions = {}) {
  let { connack = {}, answer = () => 0 } = options;
  const connects: IConnectPacket[] = [];
  const published: IPublishPacket[] = [];
  const serve = (socket: Socket) => {
    const send = (packet: Packet) => socket.write(generate(packet, { protocolVersion }));
    const parsing = parser({ protocolVersion });
    parsing.on('packet', (packet: Packet) => {
      if (packet.cmd === 'connect') {
        connects.push(packet);
        send({ cmd: 'connack', sessionPresent: false, reasonCode: 0, ...connack });
      } else if (packet.cmd === 'pingreq') send({ cmd: 'pingresp' });
      else if (packet.cmd === 'publish') {
        published.push(packet);
        acknowledge(packet, send, socket);
      } else if (packet.cmd === 'disconnect') socket.end();
    });
    socket.on('data', (data) => void parsing.parse(data));
  };
  const acknowledge = (packet: IPublishPacket, send: (packet: Packet) => void, socket: Socket) => {
    const found = answer(packet);
    if (found === 'none') return;
    if (found === 'close') return void socket.end();
    if (typeof found === 'number') {
      send({ cmd: 'puback', messageId: packet.messageId ?? 0, reasonCode: found });
      return;
    }
    send({ cmd: 'disconnect', reasonCode: found.disconnect });
    socket.end();
  };
  const { port, open, sockets } = await startTcpServer(serve);
  return {
    url: `mqtt://127.0.0.1:${port}`,
    connects,
    published,
    open,
    change: (next: BrokerOptions) => {
      ({ connack = connack, answer = answer } = next);
    },
    /** Disconnects all clients with a reason code. */
    disconnect: (reasonCode: number) => {
      for (const socket of sockets)
        socket.end(generate({ cmd: 'disconnect', reasonCode }, { protocolVersion }));
    },
    /** Acknowledges a message later. */
    acknowledge: ({ messageId = 0 }: Pick<IPublishPacket, 'messageId'>) => {
      for (const socket of sockets)
        socket.write(generate({ cmd: 'puback', messageId, reasonCode: 0 }, { protocolVersion }));
    },
  };
}
